"""`dump --follow --bootstrap` if logs lose their start and brokers are down: no offset is skipped silently."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_tables.commands import broker_follower
from kafka_records_tables.commands.broker_follower import BrokerFollower
from kafka_records_tables.commands.catalog import catalog_of
from kafka_records_tables.commands.dump_run import DumpRun
from kafka_records_tables.commands.given_source import GivenSource
from kafka_records_tables.commands.record_choice import RecordChoice

TOPIC = "__consumer_offsets"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_follower, "INTERVAL", 0)


def log(start: int, end: int) -> BrokerPartition:
    return BrokerPartition((("h", 1),), ClientConfig(), TOPIC, b"x" * 16, 0, start, end)


def asked(logs: Sequence[BrokerPartition], unread: Iterator[int | None]) -> list[tuple[int, int]]:
    """The ranges that a follower requests while a log partition changes."""
    ranges: list[tuple[int, int]] = []
    later = iter(logs[1:])

    def find() -> list[BrokerPartition]:
        found = next(later, None)
        if found is None:
            raise KeyboardInterrupt
        return [found]

    def show(log: BrokerPartition, start: int, end: int) -> int | None:
        ranges.append((start, end))
        return next(unread, None)

    with pytest.raises(KeyboardInterrupt):
        BrokerFollower(logs[:1], find).run(show)
    return ranges


def test_offsets_that_are_deleted_unseen_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked([log(7, 100), log(150, 200), log(201, 201), log(201, 203)], iter(())) == [
        (7, 100),
        (150, 200),
        (201, 203),
    ]
    assert capsys.readouterr().err.splitlines() == [
        f"note: {TOPIC}-0: offsets 100 to 149 were deleted before they were read: the log starts at 150 now",
        f"note: {TOPIC}-0: offset 200 was deleted before they were read: the log starts at 201 now",
    ]


def test_offsets_that_nobody_gave_are_asked_for_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked([log(0, 100), log(0, 120), log(0, 120)], iter([40])) == [(0, 100), (40, 120)]
    assert capsys.readouterr().err == f"note: {TOPIC}-0: records are requested again from offset 40 on\n"


def test_a_dump_says_what_no_broker_gave(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    away = replace(log(0, 5), bootstrap=(address,), config=ClientConfig(patience_ms=100))

    class Away:
        name = "away"
        questions = 0

        def partitions(self, topic: str) -> list[BrokerPartition]:
            self.questions += 1
            if self.questions > 2:
                raise KeyboardInterrupt
            return [away]

    source: Any = Away()
    monkeypatch.setattr(GivenSource, "source", lambda given, topic: source)
    catalog = catalog_of("kafka_records")
    assert DumpRun(GivenSource(bootstrap="h:1"), TOPIC, catalog, RecordChoice(catalog)).follow() == 1
    lines = capsys.readouterr().err.splitlines()
    # The same damage is reported only once.
    assert len([line for line in lines if "offsets 0 to 4 are not read" in line]) == 1
    assert lines.count(f"note: {TOPIC}-0: records are requested again from offset 0 on") == 2


def test_a_partition_that_lost_its_leader_is_told_once_and_goes_on_later(capsys: pytest.CaptureFixture[str]) -> None:
    away = replace(log(0, 0), trouble="it has no leader, for 60 s")
    still = replace(away, trouble="it has no leader")
    assert asked([away, still, log(3, 10), away, log(3, 12)], iter(())) == [(3, 10), (10, 12)]
    line = f"note: {TOPIC}-0: it has no leader, for 60 s; asking again"
    assert capsys.readouterr().err.splitlines() == [line, line]
