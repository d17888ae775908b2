"""Tables with a state directory: at any moment they have the same rows as without one, and the state has nothing wrong.

Logs grow at random cuts of histories, with a cleaner at work in between or without one, and what is kept is compacted
whenever anything is new.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources import compaction, kept_logs
from kafka_records_engine.sources.kept_logs import KeptPartition, OtherCluster, StateBusy, StateDirectory
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_engine.sources.protocol import Context, LogEnds
from kafka_records_tables import TABLES, read_table, read_tables
from kafka_records_tables.engines import kept_answers
from kafka_records_tables.engines.checked_request import request_of
from kafka_records_tables.report.making import read_report
from kafka_records_tables.tables.declaration import is_of_last_records
from kafka_records_tables.tables.following.carried_rows import needed_by_state
from tests.conftest import DATA_DIR
from tests.sources.snapshot_logs import TOPIC, LiveLog, Logs, Moment, moments
from tests.tables.histories import NAMES, history
from tests.tables.test_cleaned import SEED
from tests.tables.test_snapshots import check_rows
from tests.variants import one_in

OF_STATE = [name for name, table in TABLES.items() if table.topic == TOPIC and is_of_last_records(table)]
OF_HISTORY = ["offset_commits", "expirations", "regressions"]
SEGMENTS = DATA_DIR / "topics" / "kafka-4.3" / "segments"


@pytest.fixture(autouse=True)
def _compacts_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "is_due", lambda stored: len(stored.stretches) > 0)


def test_which_tables_need_the_last_records_alone() -> None:
    assert {*OF_STATE} >= {"current_offsets", "groups", "members", "assignments", "pending_offsets"}
    assert kept_answers.wants_history([request_of("timeline")])
    assert not kept_answers.wants_history([request_of("lag"), request_of("group_lag")])
    assert kept_answers.wants_history([request_of("lag", options={"window": "10m"})])


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(99, NAMES[::4]))
def test_a_log_that_grows(name: str, tmp_path: Path) -> None:
    whole = history(name).rows.to_pylist()
    chance = Random(f"{name}-grows{SEED}")
    for end in sorted({*chance.sample(range(1, len(whole)), min(4, len(whole) - 1)), len(whole)}):
        source = Logs((Moment(end, whole[:end], 0).live(),))
        for tables in (OF_STATE, OF_HISTORY):
            expected, found = read_tables(tables, source), read_tables(tables, source, state=tmp_path)
            again = read_tables(tables, source, state=tmp_path)
            for table in tables:
                assert found[table].table.equals(expected[table].table), (table, end)
                assert again[table].table.equals(expected[table].table), (table, end)
                assert found[table].findings == expected[table].findings == again[table].findings


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(99, NAMES[1::4]))
def test_a_log_that_is_cleaned(name: str, tmp_path: Path) -> None:
    whole = history(name).rows.to_pylist()
    for moment in moments(name, Random(f"{name}-state{SEED}")):
        source = Logs((moment.live(),))
        expected, found = read_tables(OF_STATE, source), read_tables(OF_STATE, source, state=tmp_path)
        for table in OF_STATE:
            assert found[table].findings == ()
            check_rows(table, expected[table].table, found[table].table, moment, whole)


def test_what_is_compacted_stays_small(tmp_path: Path) -> None:
    """A thousand runs store only four rows of two keys, and the rows that are compared with the log."""
    row = history(NAMES[0]).rows.to_pylist()[0]
    rows = [
        {**row, "offset": at, "base_offset": at, "key": f"key-{at % 2}".encode(), "value": b"x", "transaction": "none"}
        for at in range(500)
    ]
    for end in range(50, 501, 50):
        with StateDirectory(tmp_path, needed_by_state).opened() as directory:
            kept = directory.logs(Logs((Moment(end, rows[:end], 0).live(),)), with_history=False)
            (log,) = kept.partitions(TOPIC)
            assert isinstance(log, KeptPartition)
            found = [
                each for batch in log.batches(Context(TOPIC, 0), ["offset"]) for each in batch["offset"].to_pylist()
            ]
    assert found[-1] == 499
    assert len(found) == 66
    assert len([*tmp_path.rglob("*.parquet")]) == 1


def test_a_file_that_cannot_be_read_is_noted_and_its_partition_read_from_its_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = history(NAMES[0]).rows.to_pylist()
    half, all_of_it = (Logs((Moment(end, whole[:end], 0).live(),)) for end in (len(whole) // 2, len(whole)))
    read_table("current_offsets", half, state=tmp_path)
    (path,) = tmp_path.rglob("*.parquet")
    path.write_bytes(b"junk")
    found = read_table("current_offsets", all_of_it, state=tmp_path)
    assert found.table.equals(read_table("current_offsets", all_of_it).table)
    assert found.findings == ()
    (note,) = caplog.messages
    assert note.startswith(f"{path} cannot be read (")
    assert note.endswith(f"): {TOPIC}-0 is read from its start")
    caplog.clear()
    read_table("current_offsets", all_of_it, state=tmp_path)
    assert caplog.messages == []


# -- answers -----------------------------------------------------------------------------------------------------------


@dataclass
class Cluster:
    """A synthetic cluster: one log of commits, and the ends of the logs of topics."""

    rows: list[dict[str, Any]]
    ends: dict[tuple[str, int], int]
    topic_id: bytes = b"0123456789abcdef"
    partition_counts: dict[str, int] = field(default_factory=dict)
    read: int = 0
    """The number of records that were read."""

    name = "the test"

    def topics(self) -> list[str]:
        return sorted({TOPIC, *(topic for topic, _ in self.ends)})

    def known_topics(self) -> KnownTopics:
        return KnownTopics(partition_counts=self.partition_counts)

    def partitions(self, topic: str) -> list[Any]:
        return [CountedLog(self, Moment(len(self.rows), self.rows, 0).live())] if topic == TOPIC else []

    def log_ends(self, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
        for (topic, partition), end in self.ends.items():
            yield LogEnds(topic, partition, log_start_offset=0, log_end_offset=end, high_watermark=end)


@dataclass
class CountedLog:
    cluster: Cluster
    log: LiveLog

    @property
    def topic_id(self) -> bytes:
        return self.cluster.topic_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)

    def batches(self, *arguments: Any) -> Iterator[Any]:
        for batch in self.log.batches(*arguments):
            self.cluster.read += batch.num_rows
            yield batch


@pytest.fixture
def cluster() -> Cluster:
    """A cluster whose groups have committed offsets."""
    rows = history(NAMES[0]).rows.to_pylist()
    offsets = read_table("current_offsets", Logs((Moment(len(rows), rows, 0).live(),))).table.to_pylist()
    assert len(offsets) > 1
    return Cluster(rows[:-1], {(row["topic"], row["partition"]): 1000 for row in offsets})


def lag(cluster: Cluster, state: Path, **asked: Any) -> tuple[Any, bool]:
    """The rows of `lag`, which must be the same as without a state, and whether they were stored before."""
    made = [path.name for path in (state / "answers").glob("*")]
    found = read_table("lag", cluster, state=state, **asked)
    assert found.table.equals(read_table("lag", cluster, **asked).table)
    return found.table, made != [] and made == [path.name for path in (state / "answers").glob("*")]


def test_an_answer_is_kept_until_anything_changes(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, was_kept = lag(cluster, tmp_path)
    assert rows.num_rows
    assert not was_kept
    cluster.read = 0
    assert lag(cluster, tmp_path)[1]
    read_table("lag", cluster)
    # Each run reads the last stored rows again, to check that it is the same log.
    assert cluster.read < 3 * len(cluster.rows)

    place = next(iter(cluster.ends))
    cluster.ends[place] += 1
    assert not lag(cluster, tmp_path)[1], "a log end"
    assert lag(cluster, tmp_path)[1]
    cluster.rows = history(NAMES[0]).rows.to_pylist()
    assert not lag(cluster, tmp_path)[1], "a record"
    assert not lag(cluster, tmp_path, group=rows["group_id"][0].as_py())[1], "another question"
    assert lag(cluster, tmp_path)[1]
    cluster.partition_counts[TOPIC] = 1
    assert not lag(cluster, tmp_path)[1], "what is known about topics"
    assert lag(cluster, tmp_path)[1]
    monkeypatch.setattr(kept_answers, "program_version", lambda: "another")
    assert not lag(cluster, tmp_path)[1], "the version"


@pytest.mark.parametrize("at", [0, 40, -1])
def test_an_answer_that_is_damaged_is_made_again(cluster: Cluster, tmp_path: Path, at: int) -> None:
    rows, _ = lag(cluster, tmp_path)
    (path,) = (tmp_path / "answers").glob("*.answer")
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    assert lag(cluster, tmp_path)[0].equals(rows)
    path.write_bytes(content[: len(content) // 2])
    assert lag(cluster, tmp_path)[0].equals(rows)


def test_few_answers_are_kept(cluster: Cluster, tmp_path: Path) -> None:
    for number in range(20):
        read_table("lag", cluster, group=f"group-{number}", state=tmp_path)
    assert len([*(tmp_path / "answers").iterdir()]) == 16


def test_no_answer_is_kept_that_changes_with_the_clock(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [name for name, table in TABLES.items() if not table.follows_clock and table.topic in (TOPIC, "")]
    before = read_tables(asked, cluster)
    assert before.keys() >= {"lag", "group_lag", "current_offsets"}
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 86_400)
    monkeypatch.setattr(time, "time_ns", lambda: int((now + 86_400) * 1e9))
    after = read_tables(asked, cluster)
    ahead = {"expirations", "deletable_offsets"}  # the request for these has a moment
    for name in before:
        assert name in ahead or after[name].table.equals(before[name].table), name


# -- the directory -----------------------------------------------------------------------------------------------------


def test_another_cluster_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    lag(cluster, tmp_path)
    cluster.topic_id = b"another cluster!"
    with pytest.raises(OtherCluster) as raised:
        read_table("current_offsets", cluster, state=tmp_path)
    assert str(raised.value) == (
        f"{tmp_path}: this directory has the state of another cluster, or __consumer_offsets has since been deleted "
        f"and recreated: its id was MDEyMzQ1Njc4OWFiY2RlZg, and now is YW5vdGhlciBjbHVzdGVyIQ. Give another "
        f"directory, or delete this one to start over"
    )


def test_a_second_run_is_told_that_there_is_a_first(cluster: Cluster, tmp_path: Path) -> None:
    with (
        StateDirectory(tmp_path, needed_by_state).opened(),
        pytest.raises(StateBusy, match="another run uses this state: wait until it has ended, or give each its own"),
    ):
        read_table("lag", cluster, state=tmp_path)
    lag(cluster, tmp_path)


def test_a_directory_with_something_else_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(LogSourceError, match=r"this directory contains something else \(notes\.txt\): give a new one"):
        read_table("lag", cluster, state=tmp_path)


@pytest.mark.parametrize(
    "lost", ["last", "answers", "_state.json", "last/topic=__consumer_offsets", "last/_snapshot.json"]
)
def test_what_is_lost_is_read_again(cluster: Cluster, tmp_path: Path, lost: str) -> None:
    state = tmp_path / "state"
    rows, _ = lag(cluster, state)
    place = state / lost
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    if lost == "_state.json":
        with pytest.raises(LogSourceError, match=r"_state\.json: is missing, delete the directory"):
            lag(cluster, state)
        return
    assert lag(cluster, state)[0].equals(rows)


@pytest.mark.parametrize("change", ["shorter", "other records"])
def test_a_log_whose_end_was_written_again_is_read_from_its_start(
    cluster: Cluster, tmp_path: Path, change: str
) -> None:
    read_table("current_offsets", cluster, state=tmp_path)
    if change == "shorter":
        cluster.rows = cluster.rows[: len(cluster.rows) // 2]
    else:
        cluster.rows = [*cluster.rows[:-1], {**cluster.rows[-1], "timestamp_ms": 1}]
    expected = read_table("current_offsets", cluster)
    found = read_table("current_offsets", cluster, state=tmp_path)
    assert found.table.equals(expected.table)
    assert found.findings == ()


def test_a_log_is_read_from_its_start_once_a_day(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lag(cluster, tmp_path)
    cluster.read = 0
    read_table("current_offsets", cluster, state=tmp_path)
    assert cluster.read < len(cluster.rows)
    monkeypatch.setattr(kept_logs, "OLDEST_MS", -1)
    cluster.read = 0
    read_table("current_offsets", cluster, state=tmp_path)
    assert cluster.read == len(cluster.rows)


@pytest.mark.parametrize("asked", [{"as_of": "2026-01-31"}, {"spark": object()}])
def test_what_is_not_kept_is_refused(cluster: Cluster, tmp_path: Path, asked: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        read_table("current_offsets", cluster, state=tmp_path / "state", **asked)
    with pytest.raises(
        ValueError, match="configs: state keeps only records of coordinators' topics, and none are read"
    ):
        read_table("configs", cluster, state=tmp_path / "state")
    assert not (tmp_path / "state").exists()


@pytest.mark.matrix
def test_a_report(tmp_path: Path) -> None:
    expected = read_report(SEGMENTS)
    for _ in range(2):
        found = read_report(SEGMENTS, state=tmp_path)
        assert [each.title for each in found.findings] == [each.title for each in expected.findings]
        for name, rows in expected.tables.items():
            if not TABLES[name].follows_clock:
                assert found.tables[name].equals(rows), name
