"""Kafka's coordinator classes as judges of the tables: random histories, their answers, and the comparison."""
