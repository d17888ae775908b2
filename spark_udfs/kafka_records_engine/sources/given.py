"""From what a caller names as a source to a `Source`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, cast

from kafka_records_engine.sources.protocol import Source


def source_of(given: Any, topic: str | None = None) -> Source:
    """What `given` stands for: a Source as it is, paths as `Segments`, Arrow data as `ArrowRows`.

    `topic` is the topic of files or rows that do not name one. Raises TypeError for anything else.
    """
    if hasattr(given, "partitions"):
        return cast(Source, given)
    if isinstance(given, str | PathLike):
        from kafka_records_engine.sources.segment_files import Segments

        return Segments(given, topic)
    if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        from kafka_records_engine.sources.arrow_rows import ArrowRows

        return ArrowRows(given, topic)
    if isinstance(given, Sequence) and given and all(isinstance(each, str | PathLike) for each in given):
        from kafka_records_engine.sources.segment_files import Segments

        return Segments(given, topic)
    raise TypeError(
        f"a source is a path or several (data directory, partition folder, .log file), raw rows in Arrow, or an object "
        f"with partitions(topic), not {given!r}"
    )
