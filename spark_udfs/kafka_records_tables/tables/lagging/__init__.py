"""Additional columns of lag: unread records, times, rates, and the owner of the partition."""
