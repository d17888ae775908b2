"""Deletes and restores offsets and groups on a broker, and aborts hanging transactions."""
