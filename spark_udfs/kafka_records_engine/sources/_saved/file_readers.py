"""Opens the reader for a file and its format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.log.files.places import Place
from kafka_records_engine.sources._saved.saved_arrow import arrow_reader
from kafka_records_engine.sources._saved.saved_avro import AvroReader
from kafka_records_engine.sources._saved.saved_csv import CsvReader
from kafka_records_engine.sources._saved.saved_formats import Format, unreadable
from kafka_records_engine.sources._saved.saved_json import JsonReader
from kafka_records_engine.sources._saved.saved_parquet import ParquetReader
from kafka_records_engine.sources._saved.tabular import FileReader

_READERS: Final[Mapping[Format, Callable[[Place], FileReader]]] = {
    "parquet": ParquetReader,
    "arrow": arrow_reader,
    "avro": AvroReader,
    "csv": CsvReader,
}


def open_reader(
    place: Place, format: Format, asked: Collection[str] = (), known: Mapping[str, Any] | None = None
) -> FileReader:
    """A reader for one file. Raises LogSourceError if the file has another format.

    `asked` are the columns that the caller named. `known` are the columns that an earlier reader found in this file;
    without them, a whole JSON file is searched for columns that its first lines lack.
    """
    try:
        if format == "json":
            return JsonReader(place, asked, known)
        return _READERS[format](place)
    except (OSError, pa.ArrowException, EOFError, UnicodeDecodeError) as error:
        # pyarrow decodes column names as UTF-8.
        raise unreadable(place, error) from None
