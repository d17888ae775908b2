"""The progress of groups: unread records, since when, and what follows from how offsets moved."""
