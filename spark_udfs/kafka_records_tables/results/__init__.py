"""Answers of tables as values, and the modules that print them."""
