"""Reads of live brokers through a proxy that disturbs them: every answer is the log that was served, or says what
happened."""
