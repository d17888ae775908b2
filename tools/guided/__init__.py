"""Guided fuzzing of what reads bytes: one module per target, each with inputs to start from and a check."""
