"""If damage or a missing file hides a marker, only the rows that wait for it are lost."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_records.consumer_offsets import encode_record
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records.transaction_state.transaction_log import TransactionLogKey, TransactionLogValue
from kafka_records_engine.findings import Finding
from kafka_records_engine.sources.collected_findings import MOST_OF_A_KIND
from kafka_records_tables import read_table, read_tables
from kafka_records_tables.coordinator.transactions import UnknownOutcome
from tests.log.logs import batch, marker, record, write_log
from tests.tables.topic import OFFSETS_TOPIC, Topic
from tools.judge.cleaner import CleanedLog

FILE = "00000000000000000231.log"
MARKER = 160
"""The byte in FILE where the batch with the marker at offset 232 starts, which ends the transaction of offset 231."""

Row = dict[str, Any]


@pytest.fixture
def log(topics_dir: Path, tmp_path: Path) -> Path:
    """A partition of a captured topic, to be damaged."""
    folder = tmp_path / "__consumer_offsets-5"
    shutil.copytree(topics_dir / "kafka-4.3" / "segments" / folder.name, folder)
    return folder


def _undecided(findings: tuple[Finding, ...]) -> list[Finding]:
    return [finding for finding in findings if finding.reason == "UndecidedTransaction"]


def _keyed(rows: list[Row]) -> dict[tuple[Any, ...], Row]:
    return {(row["group_id"], row["topic"], row["partition"]): row for row in rows}


def test_a_damaged_marker(log: Path) -> None:
    whole = _keyed(read_table("current_offsets", log).table.to_pylist())
    path = log / FILE
    content = bytearray(path.read_bytes())
    content[MARKER + 70] ^= 1
    path.write_bytes(content)

    result = read_table("current_offsets", log)

    (undecided,) = _undecided(result.findings)
    assert str(undecided) == (
        f"{path}: byte 0, batch at offset 231: record at offset 231: the commit of group payment-enricher for "
        "payments-0: it is unknown how the transaction of producer 2004 ended, because its marker was not read (its "
        "row is left out: this offset or an older one may be the committed one)"
    )
    (damage,) = [finding for finding in result.findings if finding.reason == "DamagedLog"]
    assert (damage.file, damage.position, damage.severity) == (str(path), MARKER, "damage")
    assert not result.is_complete
    found = _keyed(result.table.to_pylist())
    assert whole.keys() - found.keys() == {("payment-enricher", "payments", 0)}
    assert found == {key: whole[key] for key in found}


def test_a_damaged_marker_makes_a_fact_unknown(log: Path) -> None:
    path = log / FILE
    content = bytearray(path.read_bytes())
    content[MARKER + 70] ^= 1
    path.write_bytes(content)

    rows = {row["log_offset"]: row for row in read_table("offset_commits", log).table.to_pylist()}
    groups = read_table("groups", log)

    # The records after the damage wait for a marker that no file has: their transaction is open.
    assert [(offset, rows[offset]["transaction"]) for offset in (231, 233, 234)] == [
        (231, "unknown"),
        (233, "open"),
        (234, "open"),
    ]
    assert "payment-enricher" in groups.table["group_id"].to_pylist()


def test_a_file_that_is_missing_hides_markers_too() -> None:
    """The source reports the hole; only rows that wait for a marker after it are uncertain."""
    topic = Topic()
    topic.commit("before", 1, transaction="open", producer=1)
    topic.marker("commit", producer=1)
    topic.commit("across", 1, transaction="open", producer=2)
    topic.commit("plain", 1)
    hole_after = topic.commit("deleted after it", 1, transaction="open", producer=2)
    topic.commit("deleted after it", None)
    topic.marker("commit", producer=2)
    topic.commit("behind", 1, transaction="open", producer=2)
    topic.marker("commit", producer=2)

    class Torn(CleanedLog):
        """The log with a hole."""

        def batches(self, context: Any, columns: Any, start: Any = None, end: Any = None) -> Any:
            """See `protocol.LogPartition.batches`."""
            context.log.add_hole(hole_after)
            yield from super().batches(context, columns, start, end)

    def torn(**options: Any) -> Any:
        rows = topic.table()
        times = pa.array([1000 * number for number in range(rows.num_rows)])
        rows = rows.set_column(3, "timestamp_ms", times)
        return read_table("current_offsets", Torn(rows, OFFSETS_TOPIC, 0), **options)

    result = torn()
    assert result.table["group_id"].to_pylist() == ["before", "behind", "plain"]
    assert [str(finding) for finding in result.findings] == [
        "__consumer_offsets-0: record at offset 2: the commit of group across for orders-0: it is unknown how the "
        "transaction of producer 2 ended, because its marker was not read (its row is left out: this offset or an "
        "older one may be the committed one)"
    ]
    # As of a moment before the hole, nothing is hidden: the transaction was open at that time.
    assert torn(as_of=3000).findings == ()
    assert torn(as_of=3000).table["group_id"].to_pylist() == ["before", "plain"]


def test_a_hole_at_the_end_leaves_open_transactions_in_doubt() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("g", 2, transaction="open")

    class Torn(CleanedLog):
        """The log with its end lost."""

        def batches(self, context: Any, columns: Any, start: Any = None, end: Any = None) -> Any:
            """See `protocol.LogPartition.batches`."""
            yield from super().batches(context, columns, start, end)
            context.log.add_hole(1)

    result = read_table("current_offsets", Torn(topic.table(), OFFSETS_TOPIC, 0))

    assert result.table.num_rows == 0
    assert [finding.offset for finding in _undecided(result.findings)] == [1]


def test_keys_that_nobody_can_read_cost_themselves_only() -> None:
    topic = Topic()
    topic.commit("good", 1)
    key, value = topic.rows[0][5:7]
    bad = [None, b"", b"\x00", b"\x00\x01", b"\x00\x01\xff\xff", b"\x00\x01\x00\x05abc", key[:-1]]
    for each in bad:
        topic.add_bytes(each, value)
        topic.add_bytes(each, None)
    for unknown in (b"\x07\x07abc", b"\x80\x00", b"\x00\x63"):
        topic.add_bytes(unknown, value)
    # Kafka reads a group id that is not UTF-8 with a replacement character.
    topic.add_bytes(key.replace(b"good", b"\xff\xfe\xfd\xfc"), value)
    topic.commit("good", 2)

    for table in ("current_offsets", "groups", "offset_commits"):
        result = read_table(table, topic.table())
        assert set(result.table["group_id"].to_pylist()) == {"good", "\ufffd" * 4}
        assert all(1 <= (finding.offset or 0) <= 2 * len(bad) for finding in result.findings)
        # If only the last record of a key counts, only the last of equal keys is read.
        assert len({finding.raw_key for finding in result.findings}) == len(bad)


def test_transactions_cost_seconds_however_many_and_however_they_overlap() -> None:
    """A marker for each of many commits, and one transaction that stays open over all of them."""
    topic = Topic()
    topic.commit("g", 1, transaction="open", producer=1)
    topic.marker("commit", producer=1)
    (commit, marker), count = topic.table().to_pylist(), 15_000
    size = 3 * count
    rows = pa.table(
        {
            "topic": pa.repeat(pa.scalar(OFFSETS_TOPIC), size),
            "partition": pa.repeat(pa.scalar(0, pa.int32()), size),
            "offset": pa.array(range(size), pa.int64()),
            "timestamp_ms": pa.array(range(size), pa.int64()),
            "key": pa.array([commit["key"], commit["key"], marker["key"]] * count, pa.binary()),
            "value": pa.array([commit["value"], commit["value"], marker["value"]] * count, pa.binary()),
            "producer_id": pa.array([each for number in range(count) for each in (-2, number, number)], pa.int64()),
            "transaction": pa.array(["open"] * size),
            "control": pa.array([None, None, "commit"] * count, pa.string()),
        }
    )
    source = CleanedLog(rows, OFFSETS_TOPIC, 0)
    began = time.process_time()

    offsets = read_table("current_offsets", source).table.to_pylist()
    commits = read_table("offset_commits", source).table

    assert [row["log_offset"] for row in offsets] == [size - 2]
    assert sorted(each["values"] for each in commits["transaction"].value_counts().to_pylist()) == ["committed", "open"]
    assert commits.num_rows == 2 * count
    # In batches of fifty rows. An earlier version, which compared every marker with all waiting rows, took a minute.
    assert time.process_time() - began < 20


def _logs(folder: Path, *files: tuple[int, bytes]) -> Path:
    return Path(write_log(folder, dict(files)).folder)


def _commit(offset: int, group: str, value: int | None, producer: int = -1) -> bytes:
    key = OffsetCommitKey(group, "orders", 0)
    stored = None if value is None else OffsetCommitValue(offset=value, commit_timestamp=1)
    key_bytes, value_bytes = encode_record(key, stored, None if stored is None else 4)
    return batch(
        record(0, key_bytes, value_bytes),
        1,
        offset=offset,
        attributes=0 if producer < 0 else 0x10,
        producer_id=producer,
    )


def test_a_file_that_is_gone_between_others_is_in_doubt_of(tmp_path: Path) -> None:
    """A cleaner does not pass the first record of an open transaction, so a gap after it is a missing file."""
    first = _commit(0, "a", 1) + _commit(1, "a", 2, producer=7) + _commit(2, "b", 9, producer=7)
    gone = _commit(3, "a", None) + marker(4, 7, 1)
    last = _commit(5, "c", 5)
    whole = _logs(tmp_path / "whole", (0, first), (3, gone), (5, last))
    torn = _logs(tmp_path / "torn", (0, first), (5, last))

    rows = read_table("current_offsets", whole).table.select(["group_id", "offset"]).to_pylist()
    assert rows == [{"group_id": "b", "offset": 9}, {"group_id": "c", "offset": 5}]

    result = read_table("current_offsets", torn)
    assert result.table["group_id"].to_pylist() == ["c"]
    assert [finding.offset for finding in _undecided(result.findings)] == [1, 2]
    assert not result.is_complete
    outcomes = read_table("offset_commits", torn).table.select(["log_offset", "transaction"]).to_pylist()
    assert [(row["log_offset"], row["transaction"]) for row in sorted(outcomes, key=lambda row: row["log_offset"])] == [
        (0, "none"),
        (1, "unknown"),
        (2, "unknown"),
        (5, "none"),
    ]


def test_what_a_cleaner_took_away_before_an_open_transaction_is_in_no_doubt_of(tmp_path: Path) -> None:
    log = _logs(
        tmp_path, (0, _commit(0, "a", 1) + _commit(5, "a", 2) + _commit(6, "b", 3, producer=7)), (7, _commit(7, "c", 1))
    )
    result = read_table("current_offsets", log)
    assert result.table["group_id"].to_pylist() == ["a", "c"]
    assert _undecided(result.findings) == []


def test_records_without_keys_are_summed_up(tmp_path: Path) -> None:
    count = 40_000
    body = b"".join(record(number % 50, None, b"") for number in range(count))
    log = _logs(tmp_path, (0, batch(body, count, offset=0) + _commit(10**6, "a", 1)))

    alone = read_table("current_offsets", log)
    several = read_tables(["current_offsets", "groups"], log)

    assert alone.table["group_id"].to_pylist() == ["a"]
    # Findings about records with the same offset are equal, although the records differ.
    for findings in (alone.findings, several["current_offsets"].findings):
        found = [finding for finding in findings if finding.reason == "NullKey"]
        assert len(found) == MOST_OF_A_KIND + 1
        (summary,) = [finding for finding in found if finding.offset is None]
        assert str(summary) == (
            f"__consumer_offsets-0: {count - MOST_OF_A_KIND} more of the kind NullKey (counted and not listed one by "
            "one)"
        )
    # Each table has its own text about the effect of unusable records.
    assert [finding.reason for finding in several.findings].count("NullKey") == 2 * MOST_OF_A_KIND + 1


def test_a_word_that_says_nothing_of_a_transaction_is_refused() -> None:
    topic = Topic()
    topic.commit("a", 1)
    topic.commit("b", 1, transaction="weird")
    with pytest.raises(UnknownOutcome) as failure:
        read_table("current_offsets", topic.table())
    assert str(failure.value) == (
        "__consumer_offsets-0: the transaction of the record at offset 1 is 'weird': raw rows say none, pending, "
        "committed, aborted, open or unknown"
    )


def test_without_control_rows_nobody_can_tell_how_a_pending_record_ended() -> None:
    topic = Topic()
    topic.commit("a", 1)
    topic.commit("b", 1, transaction="pending", producer=4)
    result = read_table("current_offsets", topic.table().drop_columns(["control"]))
    assert result.table["group_id"].to_pylist() == ["a"]
    assert [finding.offset for finding in _undecided(result.findings)] == [1]


def test_a_transactional_id_in_a_state_that_kafka_does_not_know() -> None:
    key, value = TransactionLogKey("t").encode(0), TransactionLogValue(producer_id=1, transaction_status=9).encode(1)
    rows = pa.table(
        {
            "topic": ["__transaction_state"],
            "partition": [0],
            "offset": [3],
            "key": [b"\0\0" + key],
            "value": [b"\0\1" + value],
        }
    )
    result = read_table("transactions", rows)
    assert len(result) == 0
    assert [str(finding) for finding in result.findings] == [
        "__transaction_state-0: record at offset 3: the transactional id t is in state 9, which Kafka does not know "
        "(its row is left out: a coordinator stops loading here)"
    ]
