"""Spec files as values: read strictly, with every violation of every file at its line and column."""
