"""From Kafka's message specs to Python: the loader, the model and one back end per product."""
