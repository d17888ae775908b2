"""Reads the log of a partition: finds its files, parses their bytes, and returns rows."""
