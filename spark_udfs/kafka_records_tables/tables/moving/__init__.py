"""The progress of groups: unread records, the time since which they are unread, and the movements of offsets."""
