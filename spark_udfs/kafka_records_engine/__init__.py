"""From bytes to columns, for Kafka's records and a user's own: logs, columns, sources and Spark functions.

It knows no record: schemas are handed to it. Only `kafka_records_engine.spark` imports PySpark, and nothing here needs
msgspec.
"""
