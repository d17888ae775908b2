"""The implementation of `kafka_records_engine.sources.saved_rows`: files, formats, columns, order."""
