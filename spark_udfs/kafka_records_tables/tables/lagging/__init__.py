"""Additional columns of lag: unread records, times, rates, and the partition's owner."""
