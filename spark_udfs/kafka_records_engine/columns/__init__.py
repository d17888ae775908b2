"""Columns: encoded messages in, Arrow columns out, many rows at a time.

It reads by the compact schemas that generated packages carry, and knows no single message. If vectors reject a row,
the schema walker reads it and says why, so that columns and rows agree on every byte.

Three more modules are for other packages: `arrow_arrays` (arrays and constants that accompany decoded ones),
`type_mapping` (one walk over a schema for every system of types) and `walker_values` (the schema walker's values as
columns take them). docs/columns-inside.md shows how it works inside.
"""

from kafka_records_engine.columns._arrow_types import ARROW_TYPES, UNKNOWN_TAGS_TYPE, arrow_type, record_arrow_type
from kafka_records_engine.columns._assembly import Columns
from kafka_records_engine.columns._decoding import decode_behind_int16, decode_column, decode_framed
from kafka_records_engine.columns._record_columns import RecordColumns, decode_record_columns
from kafka_records_engine.columns.arrow_arrays import TooMuchForOneArray
from kafka_records_engine.columns.type_mapping import UnsupportedType

__all__ = [
    "ARROW_TYPES",
    "UNKNOWN_TAGS_TYPE",
    "Columns",
    "RecordColumns",
    "TooMuchForOneArray",
    "UnsupportedType",
    "arrow_type",
    "decode_behind_int16",
    "decode_column",
    "decode_framed",
    "decode_record_columns",
    "record_arrow_type",
]
