"""Decodes columns of encoded messages into Arrow columns, many rows at a time.

It uses the compact schemas of generated packages, and no message is built in. If the vector code rejects a row, the
schema walker reads that row and says what is wrong, so columns and single rows agree on every byte.

Three modules are for other packages: `arrow_arrays` (arrays and constants that accompany decoded ones), `type_mapping`
(one walk over a schema, for Arrow types and Spark types) and `walker_values` (converts the schema walker's values for
columns). docs/columns-inside.md explains how it works inside.
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
