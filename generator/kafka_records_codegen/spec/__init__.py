"""Reads spec files strictly, and reports every violation in every file with its line and column."""
