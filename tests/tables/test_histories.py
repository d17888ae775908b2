"""The tables over logs that Kafka's coordinator classes wrote, compared with the answers of these classes.

A coordinator answered at several cuts of each log, after it had loaded the records up to there. The comparisons are
those of `make judge`, which makes them on new histories. Every rule about what the log cannot show must be needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_records.consumer_offsets import decode_record
from kafka_records_tables import read_table
from tests.tables.histories import NAMES, SHARE_NAMES, decoded, history, may_be_noted
from tests.variants import one_in
from tools.judge.answers import (
    BEFORE_4_1,
    BEFORE_4_3,
    OF_BOTH_TOPICS,
    OF_CLEANED_LOGS,
    OF_LOSSY_LOGS,
    OF_SHARED_BATCHES,
    SINCE_4_4,
    UNTOLD,
    Loaded,
)
from tools.judge.comparing import differences

pytestmark = pytest.mark.slow

ELSEWHERE: Final = ("activity",)
"""Tables that are compared in separate modules, over some of the histories."""


def test_every_history_is_here() -> None:
    assert (len(NAMES), len(SHARE_NAMES)) == (60, 27)
    assert sum(len(history(name).cuts) for name in NAMES) == 224
    assert sum(len(history(name).cuts) for name in SHARE_NAMES) == 106


@pytest.mark.parametrize("name", one_in(6, [*NAMES, *SHARE_NAMES]))
def test_tables_say_what_the_coordinator_answered(name: str) -> None:
    for cut in history(name).cuts:
        assert list(differences(_loaded(name, cut), ELSEWHERE)) == []


@pytest.mark.parametrize("name", one_in(8, NAMES))
def test_the_answer_as_of_a_time_is_that_of_the_log_up_to_it(name: str) -> None:
    """A cut corresponds to a time if the next record has a later timestamp; the timestamps of a history never fall."""
    whole = history(name)
    times = whole.rows["timestamp_ms"].to_pylist()
    for cut in whole.cuts:
        if cut + 1 == len(times) or times[cut + 1] > times[cut]:
            read = partial(_read, name, as_of=times[cut])
            assert list(differences(Loaded(whole, cut, read), ELSEWHERE)) == []


def test_some_cuts_are_times() -> None:
    assert (
        sum(
            cut + 1 < whole.rows.num_rows and times[cut + 1] > times[cut]
            for whole in map(history, NAMES)
            for times in [whole.rows["timestamp_ms"].to_pylist()]
            for cut in whole.cuts
        )
        > 60
    )


@pytest.mark.parametrize("name", NAMES)
def test_commits_are_the_records_of_the_log(name: str) -> None:
    found = _read(name, "offset_commits", max(history(name).cuts)).to_pylist()

    assert max(history(name).cuts) == history(name).records[-1]["offset"]
    expected = list(expected_commits(history(name).records))
    assert sorted(found, key=lambda row: row["log_offset"]) == expected


@pytest.mark.matrix
def test_every_rule_is_needed() -> None:
    used: Counter[str] = Counter()
    for name in (*NAMES, *SHARE_NAMES):
        for cut in history(name).cuts:
            loaded = _loaded(name, cut)
            assert list(differences(loaded, ELSEWHERE)) == []
            used += loaded.used

    elsewhere = OF_BOTH_TOPICS | OF_CLEANED_LOGS | OF_LOSSY_LOGS | OF_SHARED_BATCHES
    assert set(used) == set(UNTOLD) - elsewhere - SINCE_4_4 - BEFORE_4_3 - BEFORE_4_1


def _loaded(name: str, cut: int) -> Loaded:
    return Loaded(history(name), cut, partial(_read, name, cut=cut))


@cache
def _read(name: str, table: str, cut: int | None = None, as_of: int | None = None, **options: Any) -> pa.Table:
    """The rows of a table over a history, up to a cut or all of it. There must be no findings."""
    if table in TOLD_AS_IT_HAPPENS and (cut, as_of) != (None, None):
        return TOLD_AS_IT_HAPPENS[table](_read(name, table), cut, as_of)
    rows = history(name).rows if cut is None else history(name).up_to(cut)
    with decoded(name).used():
        result = read_table(table, rows, as_of=as_of, **options)
    assert {finding.reason for finding in result.findings} <= may_be_noted(name, options)
    return result.table


def _events_until(rows: pa.Table, cut: int | None, as_of: int | None) -> pa.Table:
    column, limit = ("log_offset", cut) if as_of is None else ("at_timestamp_ms", as_of)
    return rows.filter(pc.less_equal(rows[column], limit))


def _spans_until(rows: pa.Table, cut: int | None, as_of: int | None) -> pa.Table:
    kind, limit = ("log_offset", cut) if as_of is None else ("timestamp_ms", as_of)
    rows = rows.filter(pc.less_equal(rows[f"valid_from_{kind}"], limit))
    is_current = pc.fill_null(pc.greater(rows[f"valid_to_{kind}"], limit), True)
    return rows.set_column(rows.schema.get_field_index("is_current"), "is_current", is_current)


TOLD_AS_IT_HAPPENS: Final[Mapping[str, Callable[[pa.Table, int | None, int | None], pa.Table]]] = {
    "timeline": _events_until,
    "history": _spans_until,
}
"""Tables whose rows at a moment follow from all rows, as a test of each checks: all rows are read only once."""


# -- commits -----------------------------------------------------------------------------------------------------------


def expected_commits(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of `offset_commits`, made by the row codecs and by reading the log backwards for the markers."""
    outcomes: dict[int, str] = {}
    rows = []
    for record in reversed(records):
        producer = record["producer_id"]
        if "control" in record:
            outcomes[producer] = "committed" if record["control"] == "commit" else "aborted"
            continue
        key = bytes.fromhex(record["key"])
        if key[:2] not in (b"\x00\x00", b"\x00\x01"):
            continue
        outcome = outcomes.get(producer, "open") if record["transactional"] else "none"
        value = None if record["value"] is None else bytes.fromhex(record["value"])
        rows.append(_commit_row(record, key, value, outcome))
    yield from reversed(rows)


def _commit_row(record: dict[str, Any], key: bytes, value: bytes | None, outcome: str) -> dict[str, Any]:
    decoded: Any = decode_record(key, value)
    of, told = decoded.key, decoded.value
    topic_id = str(getattr(told, "topic_id", "A" * 22))
    epoch, expires = getattr(told, "leader_epoch", -1), getattr(told, "expire_timestamp", -1)
    return {
        "group_id": of.group,
        "topic": of.topic,
        "topic_id": None if topic_id == "A" * 22 else topic_id,
        "partition": of.partition,
        "offset": None if told is None else told.offset,
        "leader_epoch": None if epoch == -1 else epoch,
        "metadata": None if told is None else told.metadata,
        **_instant("commit", None if told is None else told.commit_timestamp),
        **_instant("expire", None if expires == -1 else expires),
        "is_tombstone": told is None,
        "transaction": outcome,
        "producer_id": None if record["producer_id"] == -1 else record["producer_id"],
        **_instant("log", record["timestamp_ms"]),
        "log_partition": 0,
        "log_offset": record["offset"],
    }


def _instant(name: str, milliseconds: int | None) -> dict[str, Any]:
    instant = None if milliseconds is None else pa.scalar(milliseconds, pa.timestamp("ms", tz="UTC")).as_py()
    return {f"{name}_timestamp": instant, f"{name}_timestamp_ms": milliseconds}
