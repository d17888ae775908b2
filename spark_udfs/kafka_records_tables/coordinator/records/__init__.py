"""Records in columns, and by name."""
