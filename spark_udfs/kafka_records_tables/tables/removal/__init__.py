"""Expiry and deletion: when offsets and groups expire, and what a broker deletes on request."""
