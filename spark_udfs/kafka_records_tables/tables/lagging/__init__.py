"""What is shown next to lag: unread records, time, rates, and the owner of the partition."""
