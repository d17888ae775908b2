"""Continues tables where they ended, with the rows and the state that a stream keeps between two batches."""
