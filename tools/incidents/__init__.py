"""Real brokers in trouble, or in health that looks like trouble, with the truth beside them. See `__main__`."""
