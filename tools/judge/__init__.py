"""Kafka's coordinator classes judge the tables: random histories, the answers of the classes, and the comparison."""
