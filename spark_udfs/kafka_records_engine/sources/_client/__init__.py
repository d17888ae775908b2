"""The formats in which Kafka clients are configured: properties files and JAAS; and the sources of tokens."""
