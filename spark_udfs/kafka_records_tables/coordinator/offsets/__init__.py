"""The offsets of groups: committed, pending in a transaction, or deleted."""
