"""Reads a log: entries are found, checked and turned into rows."""
