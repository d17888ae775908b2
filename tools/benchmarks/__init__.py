"""Benchmarks, one script each. `make bench` runs them."""
