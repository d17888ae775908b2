"""Compares two states of the same specs, rule by rule, and finds what the change breaks."""
