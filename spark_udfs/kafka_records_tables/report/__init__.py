"""The report: problems in the tables, since when, how certain they are, and what to do."""
