"""Lag beside offsets: records that are left to read, time, pace, and whose partition it is."""
