"""What may go: when offsets and groups expire, and what a broker deletes when it is asked to."""
