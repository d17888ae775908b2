"""docs/trust.md: what was measured about this project, what each measurement proves, and what it does not."""
