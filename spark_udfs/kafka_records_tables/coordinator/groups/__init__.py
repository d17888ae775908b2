"""Groups and their members."""
