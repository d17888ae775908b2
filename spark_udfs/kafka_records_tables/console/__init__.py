"""Prints on a terminal for commands, and ends commands."""
