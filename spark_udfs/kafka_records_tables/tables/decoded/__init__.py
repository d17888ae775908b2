"""From raw rows to records: decoded in columns, the last of each key, in their order, transactions settled."""
