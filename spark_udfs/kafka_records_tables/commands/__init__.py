"""The command line: the arguments of each subcommand, and its implementation."""
