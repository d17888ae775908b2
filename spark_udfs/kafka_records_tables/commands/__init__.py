"""The command line: what each command takes, and what it does."""
