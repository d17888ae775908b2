"""Answers as values, and the modules that print them."""
