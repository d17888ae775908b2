"""Benchmarks: one script each, started by `make bench`."""
