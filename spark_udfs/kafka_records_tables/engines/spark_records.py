"""The option `records` of the data source. One task both reads and decodes records of saved rows."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from kafka_records_engine.sources.saved_rows import FilePart, SavedRows
from kafka_records_engine.spark.saved_records import RecordReader, packed
from kafka_records_tables.engines.spark_offsets import BadOption

if TYPE_CHECKING:
    from kafka_records_engine.sources import Source
    from kafka_records_engine.spark.modes import Mode

_CORES: Final = 16
"""The number of cores assumed for planning. A data source cannot ask the session."""


def record_reader(given: Mapping[str, str], mode: Mode, show_secrets: bool = False) -> RecordReader:
    """The decoder for the records named by the options `records`, `coordinates`, `topic` and `package`.

    Raises BadOption, or ValueError for invalid names.
    """
    topic = given.get("topic")
    if topic is None:
        raise BadOption("the option 'records' works on one topic: set the option 'topic'")
    module = f"{given.get('package', 'kafka_records')}.schemas.{topic.strip('_').replace('-', '_').replace('.', '_')}"
    if find_spec(module.partition(".")[0]) is None or find_spec(module) is None:
        raise BadOption(f"there is no module {module} to define the records of {topic}")
    coordinates = names_in(given["coordinates"]) if "coordinates" in given else None
    schemas, names = import_module(module).RECORDS, names_in(given["records"])
    return RecordReader.of(schemas, names, mode, False, coordinates, topic, show_secrets)


def record_tasks(source: Source) -> tuple[tuple[FilePart, ...], ...]:
    """The parts of the given files of saved rows that each task reads. Raises BadOption for any other kind of
    source."""
    if not isinstance(source, SavedRows):
        raise BadOption(
            f"the option 'records' reads saved rows (Parquet and similar ones), which {source.name} is not: read "
            f"raw rows from other sources, and pass them to decode_records"
        )
    return packed(source.parts(), _CORES)


def names_in(text: str) -> list[str]:
    """The names in an option, which are separated by commas."""
    return [name.strip() for name in text.split(",")]
