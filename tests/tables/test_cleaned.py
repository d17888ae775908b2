"""Logs with records removed as Kafka's cleaner removes them.

Tables of the present state have the same rows. Tables of events have a part of them. For an earlier moment, a message
says what is missing: no row is missing without a message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.findings import INCOMPLETE_HISTORY, OUTSIDE_LOG, Finding
from kafka_records_engine.log.reading.segment_files import find_logs, read_partition
from kafka_records_tables import TABLES, Result, read_table
from tests.conftest import DATA_DIR
from tests.tables.histories import NAMES, history
from tests.variants import one_in
from tools.judge.cleaner import CleanedLog, Row, cleaned_at_random, table_of
from tools.judge.decoded_once import DecodedOnce

pytestmark = pytest.mark.slow

CAPTURED = ("kafka-4.3", "kafka-4.3-expiry", "kafka-2.8")
MOMENTS = int(os.environ.get("MOMENTS", "1"))
"""The number of moments that are requested for each log; more in a thorough run, with another SEED."""
SEED = os.environ.get("SEED", "")
MISSING = "records at some offsets are missing: compaction removed them, or a file is missing"


@dataclass(frozen=True)
class Log:
    """The rows of one log partition whose offsets have no gap."""

    topic: str
    rows: list[Row]

    @cached_property
    def table(self) -> pa.Table:
        """The same in Arrow."""
        return table_of(self.rows)

    def read(self, table: str, source: Any, **options: Any) -> Result:
        """The rows of a table over this log, or over the rest of it. Its records are decoded only once."""
        with self._decoded.used():
            return read_table(table, source, **options)

    @cached_property
    def _decoded(self) -> DecodedOnce:
        return DecodedOnce(self.table)

    @cached_property
    def commits(self) -> list[Row]:
        """Every commit with the outcome of its transaction."""
        commits: list[Row] = self.read("offset_commits", self.table).table.to_pylist()
        return commits


@cache
def _of_history(name: str) -> list[Log]:
    return [Log("__consumer_offsets", history(name).rows.to_pylist())]


@cache
def _captured(name: str) -> list[Log]:
    logs = []
    for log in find_logs([str(DATA_DIR / "topics" / name / "segments")]):
        rows = [row for batch in read_partition(log, settle=False) for row in batch.to_pylist()]
        for row in rows:
            row["partition"] = 0
        if rows and log.topic != "__share_group_state":
            logs.append(Log(log.topic, _from_zero(rows)))
    return logs


def _from_zero(rows: list[Row]) -> list[Row]:
    """The rows with new offsets and rising timestamps: brokers have cleaned some of these logs, and the rest counts as
    the whole log here."""
    latest = 0
    for number, row in enumerate(rows):
        latest = max(latest, row["timestamp_ms"])
        row["offset"] = row["base_offset"] = number
        row["timestamp_ms"] = latest
    return rows


LOGS = [*one_in(6, NAMES), *CAPTURED]


def logs_of(name: str) -> list[Log]:
    return _captured(name) if name in CAPTURED else _of_history(name)


def _cleanings(name: str) -> Iterator[tuple[Log, list[Row], CleanedLog, Random]]:
    for number, log in enumerate(logs_of(name)):
        chance = Random(f"{name}-{number}{SEED}")
        left, active = cleaned_at_random(log.rows, chance)
        yield log, left, CleanedLog(table_of(left), log.topic, active), chance


def _tables(topic: str) -> list[str]:
    return [name for name, table in TABLES.items() if table.topic == topic]


@pytest.mark.parametrize("name", LOGS)
def test_tables_of_what_is_have_the_same_rows(name: str) -> None:
    for log, left, source, _ in _cleanings(name):
        for table in _tables(log.topic):
            if TABLES[table].is_history:
                continue
            expected, found = log.read(table, log.table), log.read(table, source)
            assert expected.findings == found.findings == ()
            if table == "groups":
                _check_groups(expected.table, found.table, log, log.rows, left)
            elif table == "current_offsets":
                _same_offsets(expected.table, found.table, log.rows, left)
            elif table in ("expirations", "deletable_offsets"):
                _check_what_is_held(expected.table, found.table, log.rows, left)
            else:
                assert found.table.to_pylist() == expected.table.to_pylist()


def _check_groups(expected: pa.Table, found: pa.Table, log: Log, rows: list[Row], left: list[Row]) -> None:
    """A group that is only known from superseded, deleted or aborted commits may disappear; its newest commit may be
    gone.

    Both are about `rows`, of which `left` remain; the whole log shows whether a transaction was aborted.
    """
    whole = {row["group_id"]: row for row in expected.to_pylist()}
    there = {row["group_id"]: row for row in found.to_pylist() if row["group_id"] not in groups_back(rows, left)}
    assert set(there) <= set(whole)
    offsets = log.read("current_offsets", table_of(rows)).table["group_id"].to_pylist()
    waiting = {row["group_id"] for row in log.commits if row["transaction"] == "open"}
    for group in set(whole) - set(there) - groups_back(rows, left):
        assert (whole[group]["group_kind"], whole[group]["epoch"]) == ("simple", None)
        assert group not in offsets
        assert group not in waiting
    places = {row["offset"] for row in left}
    for group, row in there.items():
        if row["epoch"] is None and whole[group]["log_offset"] not in places:
            assert row.pop("log_offset") < whole[group].pop("log_offset")
        assert row == whole[group]


def _same_offsets(expected: pa.Table, found: pa.Table, rows: list[Row], left: list[Row]) -> None:
    back = groups_back(rows, left)
    assert [row for row in found.to_pylist() if row["group_id"] not in back] == [
        row for row in expected.to_pylist() if row["group_id"] not in back
    ]


def _check_what_is_held(expected: pa.Table, found: pa.Table, rows: list[Row], left: list[Row]) -> None:
    """A group with only deleted commits may disappear: it has no offset, is due at once and can be deleted."""
    back = groups_back(rows, left)
    whole = {_place(row): row for row in expected.to_pylist() if row["group_id"] not in back}
    there = {_place(row): row for row in found.to_pylist() if row["group_id"] not in back}
    assert set(there) <= set(whole)
    assert {is_known_by_commits(whole[place]) for place in set(whole) - set(there)} <= {True}
    for place, row in there.items():
        assert without_commits_that_may_go(row) == without_commits_that_may_go(whole[place])


def _place(row: Row) -> tuple[Any, ...]:
    return row["kind"], row["group_id"], row["topic"], row["partition"]


def is_known_by_commits(row: Row) -> bool:
    """Whether a row of expirations or deletable_offsets is about a group with only commits that were deleted or
    aborted."""
    has_nothing = row.get("rule") == "nothing_left" or (row.get("offset_count"), row.get("is_pending")) == (0, False)
    return (row["kind"], row["group_kind"], has_nothing) == ("group", "simple", True)


def without_commits_that_may_go(row: Row) -> Row:
    """The row of expirations or deletable_offsets without values from the newest commit of a simple group, which a
    cleaner may have removed."""
    if (row["kind"], row["group_kind"]) != ("group", "simple"):
        return row
    taken = {"log_offset"}
    if row.get("rule") == "nothing_left":
        taken |= {"expires_timestamp", "expires_timestamp_ms"}
    return {name: value for name, value in row.items() if name not in taken}


def groups_back(rows: list[Row], left: list[Row]) -> set[str]:
    """Groups with an offset of record type 0 whose tombstone, of type 1, a cleaner removed.

    For a cleaner these are different keys, and a coordinator that loads the rest has the offset again.
    """
    places = {row["offset"] for row in left}
    last: dict[bytes, Row] = {}
    old: set[bytes] = set()
    for row in rows:
        if row["control"] is None and row["key"][:2] in (b"\x00\x00", b"\x00\x01"):
            last[row["key"][2:]] = row
            if row["key"][1] == 0 and row["value"] is not None and row["offset"] in places:
                old.add(row["key"][2:])
    gone = (key for key in old if last[key]["value"] is None and last[key]["offset"] not in places)
    return {key[2 : 2 + int.from_bytes(key[:2], "big")].decode() for key in gone}


@pytest.mark.parametrize("name", LOGS)
def test_tables_of_what_happened_have_a_part_of_the_rows_and_say_which(name: str) -> None:
    for log, left, source, _ in _cleanings(name):
        for table in _tables(log.topic):
            if TABLES[table].helper != "facts":
                continue
            whole = {row["log_offset"]: row for row in log.read(table, log.table).table.to_pylist()}
            result = log.read(table, source)
            found = {row["log_offset"]: row for row in result.table.to_pylist()}
            for place, row in found.items():
                assert row == whole[place] or _is_first_fall_left(row, whole[place])
            complete_from = 0
            if len(left) < len(log.rows):
                (finding,) = result.findings
                assert (finding.severity, finding.reason, finding.what) == ("note", INCOMPLETE_HISTORY, MISSING)
                assert finding.complete_from is not None
                complete_from = finding.complete_from
                assert complete_from <= max(source.cleaned_up_to, 1 + max(_missing(log.rows, left)))
            else:
                assert result.findings == ()
            # A fall also needs the previous commit.
            first = "from_log_offset" if table == "regressions" else "log_offset"
            assert {place for place, row in whole.items() if row[first] >= complete_from} == {
                place for place, row in found.items() if row[first] >= complete_from
            }


def _is_first_fall_left(found: Row, whole: Row) -> bool:
    """Whether the rows are one fall of a sawtooth whose earlier falls are gone."""
    unlike = {"kind": whole["kind"], "evidence": whole["evidence"]}
    return whole.get("kind") == "sawtooth" and {**found, **unlike} == whole


def _missing(rows: list[Row], left: list[Row]) -> set[int]:
    return {row["offset"] for row in rows} - {row["offset"] for row in left}


@pytest.mark.parametrize(
    ("name", "knows"),
    [*((name, True) for name in (*NAMES[::10], *CAPTURED)), *((name, False) for name in (*NAMES[1::10], *CAPTURED))],
)
def test_an_answer_as_of_a_moment_is_that_of_the_whole_log_or_says_from_when_on_it_is(name: str, knows: bool) -> None:
    for log, left, source, chance in _cleanings(name):
        times = sorted({row["timestamp_ms"] for row in log.rows})
        if not left or left[-1] is not log.rows[-1]:
            continue
        given: Any = source if knows else source.rows
        table = chance.choice([each for each in _tables(log.topic) if not TABLES[each].is_history])
        for moment in chance.sample(times, min(MOMENTS, len(times))):
            for at in (moment - 1, moment):
                finding = _agree(table, log, given, at)
                if finding is None:
                    continue
                told = re.fullmatch(
                    r"rows may be missing or not as they were then; as of (\S+) or later the answer is complete",
                    finding.consequence,
                )
                assert told is not None
                assert finding.what == MISSING
                since = round(datetime.fromisoformat(told[1]).timestamp() * 1000)
                assert since > at
                later = [each for each in times if each >= since]
                for complete in {since, *chance.sample(later, min(1, len(later)))}:
                    assert _agree(table, log, given, complete) is None


def _agree(table: str, log: Log, source: Any, at: int) -> Finding | None:
    """The finding, if there is one; otherwise both answers must have the same rows."""
    expected, found = log.read(table, log.table, as_of=at), log.read(table, source, as_of=at)
    # Both may have a finding about the moment being outside the log.
    assert {finding.reason for finding in expected.findings} <= {OUTSIDE_LOG}
    about_rows = [finding for finding in found.findings if finding.reason != OUTSIDE_LOG]
    if about_rows:
        (finding,) = about_rows
        return finding
    rows = [row for row in log.rows if row["timestamp_ms"] <= at]
    places = set((source.rows if isinstance(source, CleanedLog) else source)["offset"].to_pylist())
    left = [row for row in rows if row["offset"] in places]
    if table == "groups":
        _check_groups(expected.table, found.table, log, rows, left)
    elif table == "current_offsets":
        _same_offsets(expected.table, found.table, rows, left)
    elif table in ("expirations", "deletable_offsets"):
        _check_what_is_held(expected.table, found.table, rows, left)
    else:
        assert found.table.to_pylist() == expected.table.to_pylist()
    return None
