"""The command `kafka-records`. A subcommand imports what it needs when it runs; `--help` needs nothing but Python."""
