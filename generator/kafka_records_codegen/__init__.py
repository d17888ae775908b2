"""Turns Kafka's message specs into Python: the loader, the model, and the products generated from it."""
