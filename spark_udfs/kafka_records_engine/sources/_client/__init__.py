"""What the configuration of a Kafka client is written in: properties files, JAAS, and where tokens come from."""
