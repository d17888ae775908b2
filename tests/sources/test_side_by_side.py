"""`dump` and `snapshot` read several brokers at the same time."""

from __future__ import annotations

import json
import re
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.findings import MISSING_RIGHT
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources import broker_threads
from kafka_records_engine.sources._brokers.requests_sent import FETCH
from kafka_records_engine.sources._stored import one_run
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_engine.sources.snapshots import Snapshot
from kafka_records_engine.sources.waiting import THREAD_NAME
from kafka_records_tables.commands.main import main
from tests.cli.segment_bytes import batch, commit
from tests.sources.fake_broker import TOPIC, FakeBroker, fake_brokers, meet, records, silent, within


def test_dump_reads_brokers_at_the_same_time_and_prints_them_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    brokers = [FakeBroker(number) for number in range(1, 6)]
    with fake_brokers(*brokers):
        for broker in brokers:
            broker.end, broker.records = 3, records
        # The first ones are the slowest.
        meet(brokers, FETCH)
        for number, broker in enumerate(brokers):
            broker.delay = 0.3 - 0.05 * number
        assert main(["dump", "--bootstrap", brokers[0].address, "--topic", TOPIC]) == 0
        places = [(line["partition"], line["offset"]) for line in map(json.loads, capsys.readouterr().out.splitlines())]
        assert places == [(partition, offset) for partition in range(5) for offset in range(3)]


def unreadable(broker: FakeBroker, asked: dict[str, Any]) -> Any:
    return broker.fetched(b"", broker.node - 1, error_code=-1)


def test_findings_of_dump_are_in_order_too(capsys: pytest.CaptureFixture[str]) -> None:
    brokers = [FakeBroker(number) for number in range(1, 4)]
    with fake_brokers(*brokers):
        for broker in brokers:
            broker.end = 3
            broker.answers[FETCH] = partial(unreadable, broker)
        brokers[0].answers[FETCH] = silent
        with tempfile.NamedTemporaryFile("w") as config:
            config.write("request.timeout.ms=300\ndefault.api.timeout.ms=300\n")
            config.flush()
            at = ["--bootstrap", brokers[0].address, "--command-config", config.name]
            assert main(["dump", *at, "--topic", TOPIC]) == 1
        found = re.findall(rf"^127\.0\.0\.1:\d+ {TOPIC}-(\d)", capsys.readouterr().err, re.MULTILINE)
        assert found == sorted(found)
        assert {*found} == {"0", "1", "2"}


def test_dump_is_ahead_of_a_slow_broker_by_a_bounded_amount(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_threads, "_MOST_BYTES_AHEAD", 4000)
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (slow, fast):
        slow.end = fast.end = 500
        slow.records = fast.records = lambda partition, offset: batch(offset, [commit(f"g{partition}", offset)])
        ahead: list[int] = []

        def fetch(asked: dict[str, Any]) -> Any:
            if not ahead:
                time.sleep(1)
                ahead.append(fast.asked.count(FETCH))
            return slow.answer_of(FETCH)(asked)

        slow.answers[FETCH] = fetch
        assert main(["dump", "--bootstrap", slow.address, "--topic", TOPIC]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 1000
        assert 2 <= ahead[0] <= 50


class Log:
    """A log of a broker."""

    def __init__(self, leader: int) -> None:
        self.leader = leader


def test_more_brokers_than_threads_are_read_in_order() -> None:
    logs: list[Any] = [Log(number % 40) for number in range(80)]
    done: list[int] = []

    def read(number: int, act: Any) -> None:
        for _ in range(3):
            act(partial(done.append, number), broker_threads._MOST_BYTES_AHEAD)

    broker_threads.read_in_order(range(len(logs)), lambda number: logs[number], read)
    assert done == [number for number in range(80) for _ in range(3)]


def test_an_error_comes_after_what_was_read_before_it() -> None:
    done: list[int] = []

    def read(number: int, act: Any) -> None:
        act(partial(done.append, number))
        if number == 1:
            raise LogSourceError("b", "broken")

    with pytest.raises(LogSourceError, match="broken"):
        broker_threads.read_in_order(range(3), lambda number: Log(number), read)  # type: ignore[arg-type,return-value]
    assert done == [0, 1]


def test_snapshots_read_brokers_at_the_same_time(tmp_path: Path) -> None:
    brokers = [FakeBroker(number) for number in range(1, 6)]
    with fake_brokers(*brokers):
        for broker in brokers:
            broker.end, broker.records = 3, records
        meet(brokers, FETCH)
        brokers[3].answers[FETCH] = lambda asked: brokers[3].fetched(b"", 3, error_code=29)
        everybody = brokers[:3] + brokers[4:]
        meet(everybody, FETCH)
        done: list[tuple[int, int]] = []
        report = take_snapshot(
            LiveBrokers(brokers[0].address), tmp_path / "kept", [TOPIC], on_progress=lambda *now: done.append(now)
        )
        added = report.topics[TOPIC]
        assert (added.partitions, added.grown, added.records) == (5, 4, 12)
        assert [(each.reason, each.partition) for each in report.findings] == [(MISSING_RIGHT, 3)]
        assert done[-1] == (5 * 300, 5 * 300)
        assert done == sorted(done)
    kept = Snapshot(tmp_path / "kept").partitions(TOPIC)
    contexts = [Context(TOPIC, log.partition) for log in kept]
    rows = [
        (log.partition, offset)
        for log, context in zip(kept, contexts, strict=True)
        for batch in log.batches(context, ["offset"])
        for offset in batch.column("offset").to_pylist()
    ]
    assert rows == [(partition, offset) for partition in (0, 1, 2, 4) for offset in range(3)]


def test_a_snapshot_that_fails_leaves_no_thread_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = [FakeBroker(number) for number in range(1, 4)]
    with fake_brokers(*brokers):
        for broker in brokers:
            broker.end, broker.records = 3, records
        brokers[1].answers[FETCH] = silent
        others = {*threading.enumerate()}
        take = one_run.Run.take

        def taken(run: one_run.Run, log: Any, moved: Any) -> None:
            if log.partition == 2:
                raise OSError(28, "No space left on device")
            take(run, log, moved)

        monkeypatch.setattr(one_run.Run, "take", taken)
        with within(10), pytest.raises(OSError, match="No space left"):
            take_snapshot(LiveBrokers(brokers[0].address), tmp_path / "kept", [TOPIC])
        # Spark's gateway in this process starts and ends threads.
        left = {*threading.enumerate()} - others
        assert [each.name for each in left if each.name.startswith(THREAD_NAME)] == []
