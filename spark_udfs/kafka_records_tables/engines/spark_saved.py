"""The options of `format("kafka-records")` that say how rows were saved: `savedColumns` and similar ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine.sources.given import source_of
from kafka_records_tables.engines.spark_offsets import BadOption

if TYPE_CHECKING:
    from kafka_records_engine.sources import Source

SAVED_OPTIONS: Final[Mapping[str, str]] = {
    "savedColumns": 'names of the columns of saved rows: {"value": "payload", "control": null}',
    "savedEncoding": 'how strings encode bytes: base64, hex, text, or {"key": "hex"}',
    "savedFormat": "format of files of saved rows: parquet, arrow, avro, json, csv or delta",
    "savedTimeUnit": "unit of the times in saved rows that are numbers: s, ms, us or ns",
}
"""The options by name; see `kafka_records_engine.sources.saved_rows.SavedRows`."""


def source_at(paths: Sequence[str], topic: str | None, saved: Mapping[str, str]) -> Source:
    """The source that the paths refer to: saved rows, if options say how rows were saved. Raises BadOption."""
    if not saved:
        return source_of(list(paths), topic)
    from kafka_records_engine.sources.saved_rows import SavedRows

    columns = _object("savedColumns", saved["savedColumns"]) if "savedColumns" in saved else None
    encoding: Any = saved.get("savedEncoding")
    if encoding is not None and encoding.lstrip().startswith("{"):
        encoding = _object("savedEncoding", encoding)
    try:
        return SavedRows(paths, topic, columns, encoding, saved.get("savedFormat"), saved.get("savedTimeUnit"))
    except ValueError as error:
        raise BadOption(str(error)) from None


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        told: Any = json.loads(text)
    except ValueError:
        told = None
    if not isinstance(told, dict) or not all(name is None or isinstance(name, str) for name in told.values()):
        raise BadOption(f"the option {option!r} is {text!r}: write a JSON object ({SAVED_OPTIONS[option]})")
    return told
