"""When offsets expire, and what may be deleted."""
