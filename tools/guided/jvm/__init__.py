"""Guided fuzzing of the functions for Spark that run in the JVM."""
