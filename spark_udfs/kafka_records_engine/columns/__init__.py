"""The columnar engine: encoded messages in, Arrow columns out, many rows at a time.

It reads by the compact schemas that generated packages carry, and knows no single message. Where vectors refuse a row,
the schema walker reads it and says why, so that columns and rows agree on every byte.
"""

from kafka_records_engine.columns.decoding import Columns, decode_column

__all__ = ["Columns", "decode_column"]
