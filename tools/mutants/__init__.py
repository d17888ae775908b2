"""Mutants of the coordinator's rules: small wrong changes, each tried by histories of Kafka and by our own tests."""
