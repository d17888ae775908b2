"""Recordings of real brokers in trouble, or in health that looks like trouble, with the truth about each. See
`__main__`."""
