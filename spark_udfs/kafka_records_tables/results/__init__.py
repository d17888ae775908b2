"""Answers as values, and what prints them."""
