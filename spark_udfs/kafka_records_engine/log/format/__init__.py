"""What the bytes of a log mean: batches and older messages, compression, checksums, offset indexes, checkpoints."""
