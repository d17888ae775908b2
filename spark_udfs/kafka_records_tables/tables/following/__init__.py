"""Continues tables where they ended: the rows and the state that a stream keeps between two batches."""
