"""Facts about Kafka that no spec contains: error codes, requests, secrets, partitions of keys, ids."""
