"""The log of a partition: its files, the format of their bytes, and how they are read."""
