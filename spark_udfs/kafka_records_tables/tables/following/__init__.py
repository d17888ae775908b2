"""Tables that go on where they ended: what a stream keeps between two batches."""
