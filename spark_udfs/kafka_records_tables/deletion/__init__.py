"""Deletes offsets and groups on a broker and restores them; aborts transactions that hang."""
