"""Rows about groups."""
