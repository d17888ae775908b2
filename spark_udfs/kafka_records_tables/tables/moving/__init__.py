"""The progress of groups: unread records, how long they have been unread, and the movements of offsets."""
