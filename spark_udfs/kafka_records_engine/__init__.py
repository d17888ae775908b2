"""From bytes to columns, for Kafka's records and for your own: logs, columns, sources and Spark functions.

No record type is built in: callers pass the schemas. Only `kafka_records_engine.spark` imports PySpark, and nothing
here needs msgspec.
"""
