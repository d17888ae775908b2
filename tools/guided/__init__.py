"""Guided fuzzing of code that reads bytes: one module per target, each with initial inputs and a check."""
