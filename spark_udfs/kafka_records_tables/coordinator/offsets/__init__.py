"""Offsets of groups: committed, waiting for their transaction, deleted."""
