"""The report: what is wrong in the tables, since when, how sure, and what to do."""
