"""Guided fuzzing of the Spark functions that run in the JVM."""
