"""Lets tables continue where they ended: what a stream keeps between two batches."""
