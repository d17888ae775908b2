"""The configuration formats of Kafka clients (properties files and JAAS), and sources of tokens."""
