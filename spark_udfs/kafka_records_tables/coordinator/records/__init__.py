"""Records, in columns and one by one."""
