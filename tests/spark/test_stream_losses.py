"""Messages of a stream about logs that lost records, if PySpark does not tell `latestOffset` what was read (4.0,
4.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_tables.engines import spark_stream
from kafka_records_tables.engines.spark_offsets import BadOption, DataLost, between
from kafka_records_tables.engines.spark_options import asked

Reader = Callable[..., Any]


@pytest.fixture(name="reader")
def _reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.setattr(spark_stream, "_CAN_LIMIT", False)

    def reader(ends: Mapping[int, int], topic_id: bytes = b"x" * 16, **options: str) -> Any:
        made: Any = spark_stream.stream_reader(asked({"bootstrap": "h:1", "topic": "t", **options}).for_stream())
        address = (("h", 1),)
        logs = [BrokerPartition(address, ClientConfig(), "t", topic_id, each, 0, end) for each, end in ends.items()]
        monkeypatch.setattr(made, "_logs", lambda: logs)
        return made

    return reader


def test_a_log_that_was_cut_off_is_lost_data(reader: Reader) -> None:
    start = reader({0: 10, 1: 4}).latestOffset()
    cut = reader({0: 3, 1: 9})
    end = cut.latestOffset()
    with pytest.raises(DataLost, match=r"t-0 was read up to offset 10 and ends at 3 now: its log was cut off"):
        cut.partitions(start, end)


def test_a_partition_that_is_gone_is_lost_data(reader: Reader) -> None:
    start = reader({0: 10, 1: 4}).latestOffset()
    fewer = reader({0: 10})
    with pytest.raises(DataLost, match=r"t-1 is gone; it was read up to offset 4"):
        fewer.partitions(start, fewer.latestOffset())


def test_lost_data_is_a_warning_for_who_asks_for_that(reader: Reader, caplog: pytest.LogCaptureFixture) -> None:
    start = reader({0: 10, 1: 4}).latestOffset()
    cut = reader({0: 3, 1: 9}, failOnDataLoss="false")
    (task,) = cut.partitions(start, cut.latestOffset())
    assert (task.value.log.partition, task.value.start, task.value.end) == (1, 4, 9)
    assert caplog.messages == ["t-0 was read up to offset 10 and ends at 3 now: its log was cut off"]


def test_a_log_that_grew_is_read_on(reader: Reader) -> None:
    grown = reader({0: 12, 1: 4})
    for start, begins in ((reader({0: 10, 1: 4}).latestOffset(), 10), (reader({}).initialOffset(), 0)):
        first, *_ = grown.partitions(start, grown.latestOffset())
        assert (first.value.start, first.value.end) == (begins, 12)


def test_a_topic_that_was_recreated_is_no_log_that_was_cut_off(reader: Reader) -> None:
    start = reader({0: 10}).latestOffset()
    anew = reader({0: 3}, topic_id=b"y" * 16)
    with pytest.raises(DataLost, match=r"topic t was deleted and recreated since it was read"):
        anew.partitions(start, anew.latestOffset())


@pytest.mark.parametrize(
    ("bound", "sentence"),
    [
        ('{"t": {"2": 0}}', r"startingOffsets has partition 2, but the topic has the partitions 0$"),
        ('{"t": {"0": 11}}', r"startingOffsets is 11 for t-0, whose log ends at 10$"),
    ],
)
def test_a_stream_starts_at_no_offset_that_is_not_there(reader: Reader, bound: str, sentence: str) -> None:
    begun = reader({0: 10}, startingOffsets=bound)
    with pytest.raises(BadOption, match=sentence):
        begun.partitions(begun.initialOffset(), begun.latestOffset())


def test_a_stream_starts_where_it_is_told_to(reader: Reader) -> None:
    begun = reader({0: 10, 1: 9, 2: 8}, startingOffsets='{"t": {"0": 4, "1": -2, "2": -1}}')
    tasks = begun.partitions(begun.initialOffset(), begun.latestOffset())
    assert [(each.value.partition, each.value.start, each.value.end) for each in tasks] == [(0, 4, 10), (1, 0, 9)]


def test_a_partition_without_a_leader_fails_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = spark_stream.stream_reader(asked({"bootstrap": "h:1", "topic": "t"}).for_stream())
    led = BrokerPartition((("h", 1),), ClientConfig(), "t", b"x" * 16, 0, 0, 9)
    logs = [led, replace(led, partition=1, end=0, trouble="it has no leader, for 60 s")]
    monkeypatch.setattr(LiveBrokers, "partitions", lambda live, topic: logs)
    with pytest.raises(LogSourceError, match=r"^h:1: t-1: it has no leader, for 60 s$"):
        made.prepareForTriggerAvailableNow()


def test_offsets_of_a_partition_without_a_leader_are_left_to_its_reader() -> None:
    log = BrokerPartition((("h", 1),), ClientConfig(), "t", b"x" * 16, 0, 0, 0, trouble="it has no leader, for 60 s")
    assert between([log], {0: 5}, {0: 7}) == [log]
