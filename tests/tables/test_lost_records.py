"""A query that returns to a log after a cleaner has removed markers and tombstones that it has not read."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_records_engine.findings import UNDECIDED_TRANSACTION
from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_tables.engines.checked_request import request_of
from kafka_records_tables.engines.incremental import IncrementalTable, RecordsLost
from kafka_records_tables.engines.seen_offsets import IS_TOLD, SEEN, UNTOLD_MS, first_lost, seen_of
from tests.tables.test_changes import Followed, Row
from tests.tables.topic import Topic

WRITTEN_MS = 1_700_000_000_000
"""When every record of a Topic was written."""
HOUR_MS = 3_600_000
LATER_MS = WRITTEN_MS + 25 * HOUR_MS


def told(name: str, **options: Any) -> Followed:
    return Followed(name, IncrementalTable(request_of(name), **options))


def take(followed: Followed, rows: pa.Table, now_ms: int = LATER_MS) -> list[Row]:
    marked = rows.append_column(IS_TOLD, pc.is_valid(rows["producer_id"]))
    return followed.take(rows, pa.Table.from_batches([seen_of(batch) for batch in marked.to_batches()], SEEN), now_ms)


class Interrupted:
    """A log with a commit in a transaction whose abort was cleaned away while the query was down."""

    def __init__(self) -> None:
        topic = Topic()
        topic.commit("g", 1)
        topic.commit("g", 2, transaction="open", producer=7)
        self.read = topic.table()
        topic.marker("abort", producer=7)
        topic.commit("h", 5)
        topic.commit("i", 6, transaction="open", producer=7)
        topic.marker("commit", producer=7)
        self.whole = topic.table()
        self.left = self.whole.slice(3)


def fates(followed: Followed) -> dict[int, str]:
    return {row["log_offset"]: row["transaction"] for row in followed.rows.values()}


def test_a_commit_whose_marker_may_be_lost_is_unknown() -> None:
    """It does not count as committed because of the next marker of its producer. Later commits are decided."""
    log = Interrupted()
    for rest in ([log.left], [log.left.slice(0, 2), log.left.slice(2)]):
        facts, offsets = (told(name, is_lenient=True) for name in ("offset_commits", "current_offsets"))
        for followed in (facts, offsets):
            take(followed, log.read, WRITTEN_MS)
        for piece in rest:
            take(facts, piece)
            take(offsets, piece)
        assert fates(facts) == {0: "none", 1: "unknown", 3: "none", 4: "committed"}
        # The offset of g is 1 or 2, and it is unknown which.
        assert {row["group_id"]: row["offset"] for row in offsets.rows.values()} == {"h": 5, "i": 6}


def test_what_may_be_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    monkeypatch.setattr(Findings, "add", lambda findings, finding: found.append(finding))
    log, followed = Interrupted(), told("current_offsets", is_lenient=True)
    take(followed, log.read, WRITTEN_MS)
    take(followed, log.left)
    assert {(each.severity, each.reason, each.offset) for each in found} == {("damage", UNDECIDED_TRANSACTION, 1)}


@pytest.mark.parametrize("name", ["offset_commits", "current_offsets", "groups", "regressions", "disappearances"])
def test_a_query_ends_where_records_may_be_lost(name: str) -> None:
    log, followed = Interrupted(), told(name)
    take(followed, log.read, WRITTEN_MS)
    with pytest.raises(RecordsLost) as caught:
        take(followed, log.left)
    said = str(caught.value)
    assert said.startswith(
        "__consumer_offsets-0: the log was read up to 2, and offset 2 is missing in records that come later than "
        "delete_retention: a cleaner may have removed tombstones and transaction markers before they were read. "
        "Give the "
        "query a new checkpointLocation, so that it reads the log from its start"
    )
    assert said.endswith(
        "start"
        if name == "disappearances"
        else '; mode "PERMISSIVE" continues, with an unknown outcome for commits that waited for their markers, '
        "and with rows that "
        "may have been deleted"
    )


def test_what_is_kept_in_memory_does_not_go_on_without_lost_records() -> None:
    log, followed = Interrupted(), told("disappearances", is_lenient=True)
    take(followed, log.read, WRITTEN_MS)
    with pytest.raises(RecordsLost, match=r"from its start$"):
        take(followed, log.left)


def test_who_comes_back_in_time_has_lost_nothing() -> None:
    """A marker stays for at least delete.retention.ms, so the next marker of the producer belongs to the commit."""
    log = Interrupted()
    for options in ({"delete_retention_ms": 26 * HOUR_MS}, {}):
        followed = told("offset_commits", **options)
        take(followed, log.read, WRITTEN_MS)
        take(followed, log.left, LATER_MS if options else WRITTEN_MS + 23 * HOUR_MS)
        assert fates(followed)[1] == "committed"


def test_a_first_pass_over_a_cleaned_log_has_lost_nothing() -> None:
    """Regardless of the age of records: the markers of rows that were just read come later."""
    log, followed = Interrupted(), told("offset_commits")
    take(followed, log.read, LATER_MS)
    take(followed, log.left, LATER_MS + 23 * HOUR_MS)
    assert fates(followed)[1] == "committed"


def test_a_log_without_gaps_has_lost_nothing() -> None:
    """A gap does not hide what ended before it either. Rows of types that a table does not look at are no gap."""
    log, followed = Interrupted(), told("offset_commits")
    take(followed, log.read, WRITTEN_MS)
    take(followed, log.whole.slice(2))
    assert fates(followed) == {0: "none", 1: "aborted", 3: "none", 4: "committed"}
    followed = told("offset_commits", is_lenient=True)
    take(followed, log.read, WRITTEN_MS)
    take(followed, pa.concat_tables([log.whole.slice(2, 1), log.whole.slice(4)]))
    assert fates(followed) == {0: "none", 1: "aborted", 4: "committed"}


def test_facts_that_wait_for_nothing_lose_nothing() -> None:
    log, followed = Interrupted(), told("offset_commits")
    take(followed, log.read.slice(0, 1), WRITTEN_MS)
    take(followed, log.whole.slice(4))
    assert fates(followed) == {0: "none", 4: "committed"}


@pytest.mark.parametrize("name", ["current_offsets", "groups", "regressions", "offset_commits", "disappearances"])
def test_gaps_of_a_source_without_transactions_are_no_loss(name: str) -> None:
    """The source returns neither markers nor aborted records, with any distance between pieces, and in any order."""
    topic = Topic()
    topic.commit("g", 1, transaction="committed", producer=7)
    topic.marker("commit", producer=7)
    topic.commit("g", 2, transaction="aborted", producer=7)
    topic.marker("abort", producer=7)
    topic.commit("g", 3, transaction="committed", producer=7)
    topic.marker("commit", producer=7)
    topic.commit("h", 4)
    rows = topic.table().take([0, 4, 6])
    for column in ("producer_id", "transaction"):
        at = rows.schema.get_field_index(column)
        rows = rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, rows.schema.field(at).type))
    for rest in ([rows.slice(1)], [rows.slice(1, 1), rows.slice(2)], [rows.take([2, 1])]):
        followed = Followed(name, IncrementalTable(request_of(name, assume="committed")))
        take(followed, rows.slice(0, 1), WRITTEN_MS)
        for piece in rest:
            take(followed, piece)
        assert followed.state is not None
        assert followed.state.read_to == 7
        if name == "current_offsets":
            assert {row["group_id"]: row["offset"] for row in followed.rows.values()} == {"g": 3, "h": 4}


# -- a cleaner ---------------------------------------------------------------------------------------------------------


def busy(chance: random.Random, count: int) -> Topic:
    """Commits of some groups, in transactions of some producers and outside."""
    topic = Topic()
    for number in range(count):
        if chance.random() < 0.3:
            topic.marker(chance.choice(["commit", "abort"]), producer=chance.choice([7, 8]))
            continue
        producer = chance.choice([None, 7, 8])
        offset = None if producer is None and chance.random() < 0.3 else number
        transaction = "none" if producer is None else "open"
        topic.commit(chance.choice("ghi"), offset, transaction=transaction, producer=producer)
    return topic


def cleaned(log: pa.Table, fate: dict[int, str]) -> pa.Table:
    """The log after any number of runs of a cleaner. It cleans up to the first record of an open transaction, and
    removes aborted and superseded records, tombstones, and the markers of transactions without remaining records
    (`CleanedTransactionMetadata.onControlBatchRead`)."""
    rows = log.select(["offset", "key", "value", "control", "producer_id"]).to_pylist()
    reach = min((offset for offset, outcome in fate.items() if outcome == "open"), default=len(rows))
    counts = [row for row in rows[:reach] if row["control"] is None and fate[row["offset"]] != "aborted"]
    last = {row["key"]: row["offset"] for row in counts}
    left, with_data = [], set()
    for row in rows:
        offset, producer = row["offset"], row["producer_id"]
        if offset >= reach:
            left.append(offset)
        elif row["control"] is not None:
            if producer in with_data:
                with_data.discard(producer)
                left.append(offset)
        elif last[row["key"]] == offset and row["value"] is not None and fate[offset] != "aborted":
            left.append(offset)
            with_data.add(producer)
    return log.filter(pc.is_in(log["offset"], pa.array(left, pa.int64())))


def fates_behind_a_cleaner(seed: int, retention_ms: int) -> tuple[dict[int, str], dict[int, str]]:
    """The reported outcomes of the commits that were read, and the true ones."""
    chance = random.Random(seed)
    log = busy(chance, 40).table()
    whole = told("offset_commits")
    take(whole, log)
    cut = chance.randrange(5, 35)
    rest = cleaned(log, fates(whole))
    rest = rest.filter(pc.greater_equal(rest["offset"], cut))
    followed = told("offset_commits", is_lenient=True, delete_retention_ms=retention_ms)
    take(followed, log.slice(0, cut), WRITTEN_MS)
    half = rest.num_rows // 2
    for piece in (rest.slice(0, half), rest.slice(half)):
        if piece.num_rows:
            take(followed, piece)
    return fates(followed), fates(whole)


def test_no_outcome_is_wrong_behind_a_cleaner() -> None:
    """If nothing counted as lost, some outcomes were wrong."""
    wrong = unknown = 0
    for seed in range(12):
        found, expected = fates_behind_a_cleaner(seed, 24 * HOUR_MS)
        assert {(found[offset], expected[offset]) for offset in found if found[offset] != expected[offset]} <= {
            ("unknown", "committed"),
            ("unknown", "aborted"),
            ("open", "committed"),
            ("open", "aborted"),
        }, seed
        unknown += "unknown" in found.values()
        found, _ = fates_behind_a_cleaner(seed, 1000 * HOUR_MS)
        wrong += any({found[offset], expected[offset]} == {"committed", "aborted"} for offset in found)
    assert unknown >= 2
    assert wrong


# -- which offsets are missing -----------------------------------------------------------------------------------------


def plainly_lost(offsets: dict[int, int], read_to: int, written_ms: int, before_ms: int) -> int | None:
    last = written_ms
    for offset in range(read_to, max(offsets) + 1):
        if offset not in offsets:
            if last < before_ms:
                return offset
        else:
            last = offsets[offset]
    return None


def test_what_is_missing_is_found_in_any_order() -> None:
    for seed in range(100):
        chance = random.Random(seed)
        offsets = {offset: chance.randrange(10) for offset in chance.sample(range(20), chance.randrange(1, 20))}
        rows = [*offsets.items(), *chance.sample([*offsets.items()], len(offsets) // 2)]
        chance.shuffle(rows)
        columns = [pa.array([row[at] for row in rows], pa.int64()) for at in (0, 1)]
        table = pa.Table.from_arrays([*columns, pa.array([True] * len(rows))], ["offset", "timestamp_ms", IS_TOLD])
        pieces = table.to_batches(max_chunksize=chance.randrange(1, 8))
        seen = pa.Table.from_batches([seen_of(piece) for piece in pieces], SEEN)
        read_to, written_ms = chance.randrange(12), chance.randrange(10)
        before_ms = 10 if seed % 2 else chance.randrange(10)
        expected = plainly_lost(offsets, read_to, written_ms, before_ms)
        assert first_lost(seen, read_to, written_ms, before_ms) == expected, seed


def test_a_record_without_a_time_is_old() -> None:
    row = {"offset": pa.array([3], pa.int64()), "timestamp_ms": pa.array([None], pa.int64()), IS_TOLD: [True]}
    seen = seen_of(pa.RecordBatch.from_pydict(row))
    assert seen.to_pylist() == [{"first": 3, "last": 3, "written_ms": UNTOLD_MS}]
    assert np.array_equal(seen.column("first"), [3])
