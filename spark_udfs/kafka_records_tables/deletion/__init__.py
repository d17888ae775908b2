"""Deletes offsets and groups on a broker, and puts them back; aborts transactions that hang."""
