"""Mutants of the coordinator's rules: small wrong changes, each tested with histories of Kafka and with our own
tests."""
