"""Whether groups get on: what is left to read, since when, and what follows from how offsets moved."""
