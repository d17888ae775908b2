"""The report: problems in the tables, when they began, how certain they are, and what to do."""
