"""Committed offsets: which commits count, in lots, one after another, and which offsets are there."""
