"""Where the bytes of a topic come from, for any records: sources of raw rows, and what they find on the way."""
