"""How much data was read, as text. Imports only the standard library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_records_runtime.errors import plural

if TYPE_CHECKING:
    from kafka_records_engine.sources import Counts


def read_words(counts: Counts, has_files: bool) -> str:
    """For example, `850 records and 9 transaction markers in 30 files of 6 partitions`. Files are not mentioned if the
    source has none."""
    return (
        f"{plural(counts.records, 'record')} and {plural(counts.markers, 'transaction marker')} "
        f"in {plural(counts.files, 'file') + ' of ' if has_files else ''}{plural(counts.partitions, 'partition')}"
    )
