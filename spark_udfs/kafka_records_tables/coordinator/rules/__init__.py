"""The rules for when offsets expire, and for what a broker deletes on request."""
