"""Why records were deleted: what wrote each tombstone."""
