"""Offsets of groups: committed, pending in a transaction, deleted."""
