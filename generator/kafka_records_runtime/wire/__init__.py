"""Reads and writes bytes: the primitives, and the schema walker, which reads and writes messages with them."""
