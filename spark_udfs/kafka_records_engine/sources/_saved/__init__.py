"""What `kafka_records_engine.sources.saved_rows` consists of: files, formats, columns, order."""
