"""The parts of `tools/write_segments.py`: records, batches, a partition, damage, and the expected answers."""
