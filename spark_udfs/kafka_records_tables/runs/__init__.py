"""What the subcommands of `kafka-records` do once their options are read: rows, lines, findings, counts, statuses."""
