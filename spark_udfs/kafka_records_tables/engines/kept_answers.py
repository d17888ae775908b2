"""Stores answers of tables next to the records in a state directory, and reuses them as long as nothing changes.

An answer is stored under a digest of everything it depends on: the version of this package, the request, what is known
about topics, the stored rows of each log partition, and the starts and ends of logs. If any of these has changed, the
answer is not found.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from struct import Struct, error
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import pyarrow as pa

from kafka_records_engine.findings import Finding
from kafka_records_engine.sources import Counts
from kafka_records_engine.sources.abilities import HasIdentity, KeepsAnswers, has
from kafka_records_engine.sources.missing_rights import missing_rights
from kafka_records_tables.engines.joined_tables import at_the_bottom, input_requests
from kafka_records_tables.tables import TABLES
from kafka_records_tables.tables.declaration import Table, is_of_last_records
from kafka_records_tables.tables.sorted_rows import sorted_rows

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition
    from kafka_records_tables.engines.log_tasks import RunReport
    from kafka_records_tables.engines.request import TableRequest

_FORM: Final = 1
_MOST_ANSWERS: Final = 16
"""The number of answers to keep, the newest ones. Each request has one."""
_SUFFIXES: Final = (".answer", ".run")
"""The suffixes of answers, and of what commands printed (`commands.repeated_run`)."""
_USUAL_PACKAGE: Final = "kafka_records"
_HEAD: Final = Struct("<QII")
"""The length in bytes of the JSON that follows, the CRC-32 of the JSON and the rows, and 0. The rows come last, as an
Arrow file that starts at a multiple of _ALIGNED."""
_ALIGNED: Final = 64
_NOT_COMPARED: Final = ("high_watermark_timestamp", "high_watermark_timestamp_ms")
"""Columns of `log_ends` that say when brokers were asked."""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The rows of a table, and the findings about its records."""

    rows: pa.Table
    findings: tuple[Finding, ...]
    """Findings about records."""
    joined: tuple[Finding, ...]
    """The findings of the view itself."""
    counts: Counts
    """The counts of what was read, except times."""


def wants_history(requests: Iterable[TableRequest]) -> bool:
    """Whether any of the requests needs all records of logs, not only the last one of each key."""
    read = [each.table for request in requests for each in at_the_bottom(request)]
    return any(table.records and not is_of_last_records(table) for table in read)


def _follows_clock(request: TableRequest) -> bool:
    """Whether a table, or any input read for it, changes as time passes."""
    table = request.table
    return table.follows_clock or any(map(_follows_clock, input_requests(request).values() if table.inputs else ()))


class KeptAnswers:
    """The answers in a source's state directory."""

    def __init__(self, source: Any) -> None:
        """`source` has the ability `KeepsAnswers`."""
        self._source = source
        self._keeper: KeepsAnswers = source
        self._folder = self._keeper.answers

    def begin(self) -> None:
        """Record that an answer is being computed, so that further requests to the source count as part of it."""
        self._keeper.asked_meanwhile()

    def key(
        self,
        request: TableRequest,
        asked: Mapping[str, tuple[TableRequest, Sequence[LogPartition]]],
        ends: Mapping[str, tuple[Sequence[pa.RecordBatch], RunReport]],
    ) -> str | None:
        """The name of an answer; None for an answer that is not stored.

        `asked` are the requests for the records from which the table is ultimately computed, with their log partitions.
        `ends` are the rows of the other tables from which it is computed, with their findings.
        """
        table = request.table
        if _follows_clock(request) or TABLES.get(table.name) is not table or request.question.package != _USUAL_PACKAGE:
            return None
        if not asked or any(report.findings for _, report in ends.values()):
            return None
        digest = sha256()

        def add(*parts: object) -> None:
            for part in parts:
                text = repr(part).encode()
                digest.update(len(text).to_bytes(8, "big") + text)

        add(_FORM, program_version(), request.question)
        for name, (each, logs) in sorted(asked.items()):
            topics = each.topics
            known = (topics.names, topics.partition_counts, topics.retentions, topics.deletions.times)
            add(name, each.question, *(sorted(part.items()) for part in known), topics.deletions.since_ms)
            for log in logs:
                if not has(log, HasIdentity):
                    return None
                add(log.identity)
        for name, (batches, _) in sorted(ends.items()):
            add(name)
            for batch in _in_order(batches):
                digest.update(batch.serialize())
        return digest.hexdigest()

    def find(self, key: str, table: Table) -> KeptAnswer | None:
        """The answer with this name, if it is complete and the same rights are missing as when it was stored."""
        path = os.path.join(self._folder, f"{key}.answer")
        try:
            with pa.memory_map(path) as file:
                whole = file.read_buffer()
            size, crc, _ = _HEAD.unpack_from(whole)
            about_bytes, content = whole.slice(_HEAD.size, size), whole.slice(_content_at(size))
            if crc32(content, crc32(about_bytes)) != crc:
                return None
            about = json.loads(about_bytes.to_pybytes())
            for topics, hidden in about["rights"]:
                if sorted(each.resource_name for each in missing_rights(self._source, topics)) != hidden:
                    return None
            rows = pa.ipc.open_file(content).read_all()
            if not rows.schema.equals(table.schema):
                return None
            counts = Counts()
            for name, number in about["counts"].items():
                setattr(counts, name, number)
            counts.leniencies.update(about["leniencies"])
            findings, joined = ([Finding(**each) for each in about[name]] for name in ("findings", "joined"))
        except (OSError, ValueError, KeyError, TypeError, error, pa.ArrowException):
            return None
        with suppress(OSError):
            os.utime(path)
        self._keeper.note_answer()
        return KeptAnswer(rows, tuple(findings), tuple(joined), counts)

    def keep(self, key: str, table: Table, answer: KeptAnswer) -> KeptAnswer:
        """Store an answer with sorted rows, and return it in this form. An answer that depends on more than log rows is
        not stored."""
        asked = self._keeper.asked_meanwhile()
        rows = sorted_rows(answer.rows, table.sort)
        kept = KeptAnswer(rows, answer.findings, answer.joined, answer.counts)
        told = [*map(asdict, answer.findings)], [*map(asdict, answer.joined)]
        if asked.of_now or any(isinstance(value, bytes) for some in told for each in some for value in each.values()):
            return kept
        numbers = {name: value for name, value in asdict(answer.counts).items() if isinstance(value, int)}
        about = {
            "findings": told[0],
            "joined": told[1],
            "counts": numbers,
            "leniencies": dict(answer.counts.leniencies),
            "rights": [[list(topics), list(hidden)] for topics, hidden in sorted(asked.rights.items())],
        }
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema) as out:
            out.write_table(rows)
        content = sink.getvalue()
        text = json.dumps(about).encode()
        head = _HEAD.pack(len(text), crc32(content, crc32(text)), 0)
        parts = [head, text, bytes(_content_at(len(text)) - len(text) - _HEAD.size), content]
        from kafka_records_engine.sources.kept_logs import write_whole

        with suppress(OSError):  # the answer itself is still valid
            write_whole(os.path.join(self._folder, f"{key}.answer"), parts)
            self._forget_old()
        self._keeper.note_answer()
        return kept

    def _forget_old(self) -> None:
        paths = [os.path.join(self._folder, name) for name in os.listdir(self._folder)]
        for suffix in _SUFFIXES:
            of_kind = [path for path in paths if path.endswith(suffix)]
            for path in sorted(of_kind, key=_used, reverse=True)[_MOST_ANSWERS:]:
                with suppress(OSError):
                    os.unlink(path)


def _content_at(size: int) -> int:
    return -(-(_HEAD.size + size) // _ALIGNED) * _ALIGNED


def _used(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _in_order(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Log ends in a comparable form: sorted by topic and partition, regardless of which broker answered first."""
    if not batches:
        return []
    rows = pa.Table.from_batches(batches)
    rows = rows.drop_columns([name for name in _NOT_COMPARED if name in rows.column_names])
    by = [(name, "ascending") for name in ("topic", "partition") if name in rows.column_names]
    ordered: list[pa.RecordBatch] = (rows.sort_by(by) if by else rows).combine_chunks().to_batches()
    return ordered


@cache
def program_version() -> str:
    """The version of this program; 0 if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kafka-records")
    except PackageNotFoundError:
        return "0"
