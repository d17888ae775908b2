"""The formats of a log: batches and older messages, compression, checksums, offset indexes, checkpoints."""
