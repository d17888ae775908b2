"""Reads and writes bytes: the primitives, and the schema walker, which uses them to read and write messages."""
