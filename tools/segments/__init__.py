"""What `tools/write_segments.py` is made of: the records, the batches around them, one partition, damage, the truth."""
