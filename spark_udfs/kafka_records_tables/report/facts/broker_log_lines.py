"""Reads a broker's log messages about the loading of coordinators, if the log file is near the data directory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.facts.data_directories import data_directories

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext

_MOST_BYTES: Final = 64 * 1024 * 1024
"""The number of bytes to read at the end of a broker's log file."""
_MOST_FILES: Final = 20
_NEAR: Final = ("..", "../logs")
"""Folders that may contain a broker's log files, relative to its data directory."""

_LINES: Final = tuple(
    re.compile(each)
    for each in (
        # CoordinatorRuntime, since 3.6 (group coordinator) and 4.0 (share coordinator)
        r"Finished loading of metadata from (?P<topic>\S+)-(?P<partition>\d+) with epoch \d+ in (?P<ms>\d+) ?ms where "
        r"(?P<waited>\d+) ?ms was spent in the scheduler\. Loaded (?P<records>\d+) records which total to "
        r"(?P<bytes>\d+) bytes",
        # TransactionStateManager
        r"Finished loading (?P<records>\d+) transaction metadata from (?P<topic>\S+)-(?P<partition>\d+) in "
        r"(?P<ms>\d+) milliseconds, of which (?P<waited>\d+) milliseconds was spent in the scheduler",
        # GroupMetadataManager, up to 3.9
        r"Finished loading offsets and group metadata from (?P<topic>\S+)-(?P<partition>\d+) for epoch \S+ in "
        r"(?P<ms>\d+) milliseconds, of which (?P<waited>\d+) milliseconds was spent in the scheduler",
        # CoordinatorRuntime
        r"Failed to load metadata from (?P<topic>\S+)-(?P<partition>\d+) with epoch \d+ due to (?P<why>.*)",
    )
)
_MOMENT: Final = re.compile(r"\[?(?P<moment>[\d: ,.\-T]+?)\]? +(?:TRACE|DEBUG|INFO|WARN|ERROR)\b")


@dataclass(frozen=True, slots=True)
class Load:
    """A load of a log by a coordinator, or a failed attempt."""

    topic: str
    partition: int
    moment: str
    """The time in the log line, in the time zone of the broker; empty if there is none."""
    file: str
    ms: int = 0
    waited_ms: int = 0
    """The part of the duration that the load spent waiting."""
    records: int | None = None
    bytes: int | None = None
    failed: str | None = None
    """Why the load failed; None if it succeeded."""


def coordinator_loads(context: RuleContext) -> list[Load]:
    """The loads in the log files of brokers near a report's data directories, in file order."""
    return context.once(_all_loads)


def _all_loads(context: RuleContext) -> list[Load]:
    if not context.is_stored:
        return []
    files: dict[Path, None] = {}
    for directory in data_directories(context.request.source_arguments):
        for near in _NEAR:
            files.update(dict.fromkeys(sorted((directory / near).resolve().glob("*.log*"))))
    return [load for file in list(files)[:_MOST_FILES] for load in _loads_in(file)]


def _loads_in(file: Path) -> Iterator[Load]:
    try:
        with file.open("rb") as data:
            data.seek(max(file.stat().st_size - _MOST_BYTES, 0))
            for line in data:
                if b" load" in line:
                    yield from _load_of(line.decode("utf-8", "replace"), str(file))
    except OSError:
        return


def _load_of(line: str, file: str) -> Iterator[Load]:
    for pattern in _LINES:
        if found := pattern.search(line):
            told = found.groupdict()
            moment = _MOMENT.match(line)
            yield Load(
                told["topic"],
                int(told["partition"]),
                moment["moment"].strip() if moment else "",
                file,
                int(told.get("ms") or 0),
                int(told.get("waited") or 0),
                None if told.get("records") is None else int(told["records"]),
                None if told.get("bytes") is None else int(told["bytes"]),
                None if told.get("why") is None else told["why"].strip(),
            )
            return
