"""The progress of groups: unread records, since when they are unread, and what the moves of offsets show."""
