"""From Kafka's message specs to Python: the loader, the model, and the products generated from it."""
