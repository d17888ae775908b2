"""From the sources on the command line to log partitions of the coordinators' topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_records_runtime.errors import plural
from kafka_records_tables.runs.catalog import TOPICS_TEXT, Catalog
from kafka_records_tables.runs.endings import CommandError
from kafka_records_tables.runs.standard_error import say

if TYPE_CHECKING:
    from kafka_records_engine.log.reading import FoundLog


def chosen_logs(sources: Sequence[str], topic: str | None, catalog: Catalog, quietly: bool = False) -> list[FoundLog]:
    """The log partitions whose records `catalog` knows, sorted by topic and partition.

    Other topics in the same directory are left out; a line on standard error says so unless `quietly`. Raises a
    CommandError when nothing is left or a source is not there.
    """
    from kafka_records_engine.log.reading import LogSourceError, find_logs

    if topic is not None:
        catalog.checked(topic)
    try:
        logs = find_logs(sources, topic)
    except LogSourceError as error:
        hint = " (--topic NAME)" if error.detail.endswith("say which topic it holds") else ""
        raise CommandError(f"{error}{hint}") from None
    chosen = [log for log in logs if catalog.folder_of(log.topic) is not None]
    if not chosen:
        names = ", ".join(dict.fromkeys(log.topic for log in logs))
        raise CommandError(f"{', '.join(sources)}: only {names} here, none of {catalog.text}")
    if len(chosen) < len(logs) and not quietly:
        others = len({log.topic for log in logs}.difference(log.topic for log in chosen))
        read = TOPICS_TEXT if catalog.is_kafka else catalog.text
        say(
            f"note: {plural(len(logs) - len(chosen), 'partition')} of {plural(others, 'other topic')} left out: "
            f"read are {read}"
        )
    return chosen
