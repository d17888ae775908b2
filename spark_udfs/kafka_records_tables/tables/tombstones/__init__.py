"""Determines why records were deleted: the cause of each tombstone."""
