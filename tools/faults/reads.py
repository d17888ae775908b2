"""Reads through the proxies, and the expected results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.live_requests import LiveRequests
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_tables import read_table
from tools.faults.served import AGAIN, COMMITS, GROWING, PARTITIONS, RECORDS, STEADY, Served

LIMIT: Final = 20.0
"""Seconds that a read may take."""
TABLES: Final = ("current_offsets", "groups", "offset_commits", "pending_offsets", "timeline", "transactions")
"""Tables of logs that do not change."""
ENDS: Final = ("lag", "group_lag", "log_ends")
"""Tables with the ends of logs."""
REQUESTED: Final = ("groups", "current_offsets", "lag")
"""Tables that are made from requests to coordinators."""
KEPT: Final = ("current_offsets", "offset_commits", "groups")
"""Tables that are read with a state directory."""
_CHANGING: Final = frozenset({GROWING, AGAIN})
_LEFT_OUT: Final = frozenset({"place", "high_watermark_timestamp", "high_watermark_timestamp_ms"})
"""Columns with the broker that was asked, and the time of the request."""

Rows = list[str]


class Difference(Exception):
    """An answer is wrong, or it is incomplete without a finding."""


class Truth:
    """The content of the logs, read from the files of a broker and without a proxy."""

    def __init__(self, data: Path, direct: str) -> None:
        """`data` is the folder of a broker with a replica of every partition, `direct` are the brokers' addresses."""
        self._data = data
        self.direct = direct
        files = Segments(data)
        self.steady = [_raw(log)[0] for log in sorted(files.partitions(STEADY), key=lambda log: log.partition)]
        self.tables = {name: _rows(read_table(name, files, processes=1).table) for name in TABLES}
        self.ends = {name: _rows(read_table(name, LiveBrokers(direct), processes=1).table) for name in ENDS}
        self.requested = {name: _rows(read_table(name, LiveRequests(direct), processes=1).table) for name in REQUESTED}

    def is_settled(self) -> bool:
        """Whether brokers serve everything that is in the files."""
        live = sorted(LiveBrokers(self.direct).partitions(STEADY), key=lambda log: log.partition)
        tables = {name: _rows(read_table(name, LiveBrokers(self.direct), processes=1).table) for name in TABLES}
        return len(live) == PARTITIONS and [_raw(log)[0] for log in live] == self.steady and tables == self.tables

    def grown(self) -> pa.Table:
        """The present content of the growing log, as the brokers have it."""
        (log,) = LiveBrokers(self.direct).partitions(GROWING)
        rows, found = _raw(log)
        if found:
            raise LogSourceError(self.direct, f"{GROWING}: {found[0]}")
        return rows


class Reads:
    """Reads of every kind. Each returns the findings of damage; raises Difference, or the error of the source."""

    def __init__(self, bootstrap: str, truth: Truth, served: Served, random: Random, state: Path, limit: float) -> None:
        """`bootstrap` has the addresses of the proxies. `state` is the folder for reads with a state. `limit` is the
        timeout of an answer in seconds."""
        self._bootstrap, self._truth, self._served = bootstrap, truth, served
        self._random, self._state, self._limit = random, state, limit
        self.took = 0.0
        """Seconds of the last read, without the comparison."""
        self.kinds: dict[str, Callable[[], list[Finding]]] = {
            "raw rows": self._raw_rows,
            "log that grows": self._growing,
            "topic created again": self._again,
            "tables": self._tables,
            "tables with log ends": self._with_ends,
            "tables with a state": self._with_state,
            "requests to coordinators": self._requests,
            "snapshots": self._snapshot,
        }

    def _config(self) -> ClientConfig:
        milliseconds = round(1000 * self._limit)
        return ClientConfig(
            request_timeout_ms=milliseconds,
            connect_timeout_ms=milliseconds,
            patience_ms=5 * milliseconds,
            fetch_bytes=self._random.choice((1_000, 5_000, 50_000, 4_194_304)),
            client_rack=self._random.choice(("", "", "rack-2")),
        )

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started, self.took = time.monotonic(), 0.0
        try:
            yield
        finally:
            self.took = time.monotonic() - started

    def _table(self, name: str, **options: Any) -> Any:
        with self._timed():
            return read_table(name, self._brokers(), processes=1, **options)

    def _brokers(self) -> LiveBrokers:
        return LiveBrokers(self._bootstrap, self._config(), timeout=LIMIT)

    # -- raw rows ------------------------------------------------------------------------------------------------------

    def _raw_rows(self) -> list[Finding]:
        with self._timed():
            logs = sorted(self._brokers().partitions(STEADY), key=lambda log: log.partition)
            answers = [_raw(log) for log in logs]
        if [log.partition for log in logs] != list(range(PARTITIONS)):
            raise Difference(f"partitions {[log.partition for log in logs]} of {PARTITIONS}")
        every: list[Finding] = []
        for log, (rows, found), whole in zip(logs, answers, self._truth.steady, strict=True):
            every += found
            if log.trouble is None:
                check_part(rows, whole, found, f"{STEADY}-{log.partition}")
            elif rows.num_rows or not found:
                raise Difference(f"{STEADY}-{log.partition}: {rows.num_rows} rows in spite of: {log.trouble}")
        return every

    def _growing(self) -> list[Finding]:
        least = self._served.grown
        with self._timed():
            (log,) = self._brokers().partitions(GROWING)
            rows, found = _raw(log)
        if log.trouble is None:
            whole = self._truth.grown()
            if not least <= log.end <= whole.num_rows:
                raise Difference(f"{GROWING} ends at {log.end}: acknowledged are {least}, later {whole.num_rows}")
            check_part(rows, whole.slice(0, log.end), found, GROWING)
        return found

    def _again(self) -> list[Finding]:
        before = self._served.again
        with self._timed():
            (log,) = self._brokers().partitions(AGAIN)
            rows, found = _raw(log)
        after = self._served.again
        values = [value.decode() for value in rows["value"].to_pylist()]
        times = {int(value.partition(":")[0]) for value in values}
        told = f"{AGAIN}, created {before.time} to {after.time} times, {before.records} to {after.records} records"
        if len(times) > 1 or not times <= {*range(before.time - 1, after.time + 1)}:
            raise Difference(f"{told}: values of {sorted(times)}")
        expected = [f"{time}:{each}" for time in times for each in range(RECORDS)]
        if values != expected[: len(values)] and not found:
            raise Difference(f"{told}: {values[:3]} and so on, {len(values)} values")
        is_same = before.time == after.time and log.trouble is None
        if is_same and len(values) < before.records and not found:
            raise Difference(f"{told}: only {len(values)} values, and no finding")
        return found

    # -- tables --------------------------------------------------------------------------------------------------------

    def _tables(self) -> list[Finding]:
        name = self._random.choice(TABLES)
        return check_table(name, self._table(name), self._truth.tables[name])

    def _with_ends(self) -> list[Finding]:
        name = self._random.choice(ENDS)
        return check_table(name, self._table(name), self._truth.ends[name])

    def _with_state(self) -> list[Finding]:
        name = self._random.choice(KEPT)
        result = self._table(name, state=self._state)
        return check_table(name, result, self._truth.tables[name])

    def _requests(self) -> list[Finding]:
        name = self._random.choice(REQUESTED)
        source = LiveRequests(self._bootstrap, self._config(), timeout=LIMIT)
        with self._timed():
            result = read_table(name, source, processes=1)
        return check_table(name, result, self._truth.requested[name])

    def _snapshot(self) -> list[Finding]:
        """Take a snapshot through the proxies. If it lacks something, take another one without them, which must be
        complete."""
        with TemporaryDirectory() as folder:
            with self._timed():
                found = _damage(take_snapshot(self._brokers(), folder, [COMMITS]).findings)
            name = "offset_commits"
            result = read_table(name, folder, processes=1)
            if not found:
                check_table(name, result, self._truth.tables[name], may_lack=False)
                return found
            take_snapshot(LiveBrokers(self._truth.direct), folder, [COMMITS])
            check_table(name, read_table(name, folder, processes=1), self._truth.tables[name], may_lack=False)
            return found


def _raw(log: Any) -> tuple[pa.Table, list[Finding]]:
    context = Context(log.topic, log.partition)
    rows = pa.Table.from_batches(list(log.batches(context, RAW_SCHEMA.names)), RAW_SCHEMA)
    return rows, _damage(context.findings)


def _damage(findings: Sequence[Finding]) -> list[Finding]:
    return [each for each in findings if each.severity == "damage"]


def _rows(table: pa.Table) -> Rows:
    """The rows as sorted texts, without values that change, and without the names of brokers that were asked."""
    names = [name for name in table.schema.names if name not in _LEFT_OUT]
    rows = (row for row in table.select(names).to_pylist() if row.get("topic") not in _CHANGING)
    return sorted(map(repr, rows))


def check_part(rows: pa.Table, whole: pa.Table, found: list[Finding], name: str) -> None:
    """Check that rows are those of the log, except for offsets after the first one that a finding names. Raises
    Difference."""
    if rows.equals(whole):
        return
    there = {row["offset"]: repr(row) for row in whole.to_pylist()}
    got = [(row["offset"], repr(row)) for row in rows.to_pylist()]
    offsets = [offset for offset, _ in got]
    if offsets != sorted(set(offsets)):
        raise Difference(f"{name}: offsets twice or out of order: {offsets}")
    wrong = [offset for offset, row in got if _settled(there.get(offset, "")) != _settled(row)]
    if wrong:
        raise Difference(f"{name}: rows that the log does not have, at {wrong}")
    missing = [offset for offset in there if offset not in set(offsets)]
    first = min((each.base_offset for each in found if each.base_offset is not None), default=None)
    if missing and (first is None or first > missing[0]):
        raise Difference(
            f"{name}: offsets from {missing[0]} on are missing, {len(missing)}, and damage begins at {first}"
        )
    if not missing and not found:
        raise Difference(f"{name}: other transactions, and no finding")


def _settled(row: str) -> str:
    """The row without values that depend on later records, which may not have been read."""
    for state in ("committed", "aborted", "open", "unknown"):
        row = row.replace(f"'transaction': '{state}'", "")
    return row


def check_table(name: str, result: Any, expected: Rows, *, may_lack: bool = True) -> list[Finding]:
    """Returns the damage that was found. Without damage, or without `may_lack`, the rows must be those of the log.
    Raises Difference."""
    found = _damage(result.findings)
    if found and may_lack:
        return found
    rows = _rows(result.table)
    if rows != expected:
        more, less = sorted(set(rows) - set(expected))[:3], sorted(set(expected) - set(rows))[:3]
        raise Difference(
            f"table {name}: {len(rows)} rows, and the log has {len(expected)}; only in the answer {more}, only in the "
            f"log {less}; findings {[str(each) for each in result.findings]}"
        )
    return found
