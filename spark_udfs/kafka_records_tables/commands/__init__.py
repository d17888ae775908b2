"""The command line: what each subcommand accepts, and what it does."""
