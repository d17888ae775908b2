"""Share partitions."""
