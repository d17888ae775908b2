"""Why records were deleted: the cause of each tombstone."""
