"""The options of `format("kafka-records")` and the offsets in them, without a session."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import pytest

from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.time_limit import TimeLimit
from kafka_records_tables.engines.spark_offsets import BadOption, NextOffsets, bound_of, limited
from kafka_records_tables.engines.spark_options import Brokers, asked
from kafka_records_tables.query import _MOMENTS

LIVE = {"bootstrap": "broker-1:9092,broker-2:9092", "topic": "t"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "there is nothing to read: pass a path to load, or set the option 'path' or 'bootstrap'"),
        (
            {**LIVE, "path": "/data"},
            "files and brokers cannot be read together: leave out the path, or the option 'bootstrap'",
        ),
        ({"bootstrap": "broker-1:9092"}, "raw rows are read from one topic at a time: set the option 'topic'"),
        ({**LIVE, "bootstrap": "broker-1"}, "invalid broker 'broker-1': write HOST:PORT"),
        (
            {**LIVE, "kafka.bootstrap.servers": "broker-1:9092"},
            "bootstrap and kafka.bootstrap.servers are the same: give only one of them",
        ),
        (
            {"path": "/data", "commandConfig": "/client.properties"},
            "the option 'commandConfig' is for brokers: give their addresses with the option 'bootstrap'",
        ),
        (
            {"path": "/data", "kafka.client.id": "me"},
            "the option 'kafka.client.id' is for brokers: give their addresses with the option 'bootstrap'",
        ),
        (
            {**LIVE, "kafka.ssl.keystore.key": "-----BEGIN"},
            "kafka.ssl.keystore.key would be readable in Spark's plans and event logs: write it into a properties "
            "file, and give that file with the option 'commandConfig'",
        ),
        (
            {"path": "/data", "records": "OffsetCommit"},
            "the option 'records' works on one topic: set the option 'topic'",
        ),
        (
            {**LIVE, "records": "OffsetCommit"},
            "the option 'records' reads saved rows: brokers return raw rows, which decode_records decodes",
        ),
        (
            {"path": "/data", "topic": "orders", "records": "OffsetCommit"},
            "there is no module kafka_records.schemas.orders to define the records of orders",
        ),
        (
            {"path": "/data", "records": "OffsetCommit", "table": "groups"},
            "the option 'table' cannot be combined with 'records'",
        ),
        (
            {"path": "/data", "coordinates": "offset"},
            "the option 'coordinates' is for decoded records: also set the option 'records'",
        ),
        (
            {"path": "/data", "timeout": "5s"},
            "the option 'timeout' is for brokers: give their addresses with the option 'bootstrap'",
        ),
        ({**LIVE, "timeout": "0s"}, "invalid timeout: 0 s; give more than 0 seconds"),
        (
            {**LIVE, "timeout": "soon"},
            "the option 'timeout': 'soon' is not a duration: write 90s, 30m, 24h, 7d or 2w, or as in ISO 8601 P7D or "
            "PT24H",
        ),
        ({**LIVE, "maxOffsetsPerTrigger": "0"}, "the option 'maxOffsetsPerTrigger' is '0': write a number above 0"),
        ({**LIVE, "savedFormat": "csv"}, "the option 'savedFormat' is for files: leave it out when brokers are read"),
        (
            {"path": "x", "savedFormat": "excel"},
            "format must be one of parquet, arrow, avro, json, csv, delta, not 'excel'",
        ),
        ({"path": "x", "savedTimeUnit": "min"}, "time_unit must be one of s, ms, us, ns, not 'min'"),
        (
            {"path": "x", "savedEncoding": "{hex}"},
            "the option 'savedEncoding' is '{hex}': write a JSON object (how strings encode bytes: base64, hex, "
            'text, or {"key": "hex"})',
        ),
        ({**LIVE, "bytesPerTask": "64m"}, "the option 'bytesPerTask' is '64m': write a number above 0"),
        ({**LIVE, "failOnDataLoss": "no"}, "the option 'failOnDataLoss' is 'no': write true or false"),
        (
            {**LIVE, "startingOffsets": '{"t": {"0": -3}}'},
            'the option \'startingOffsets\' has -3 for partition 0: write "earliest", "latest" or offsets by partition '
            'as in {"topic": {"0": 23, "1": -2}}',
        ),
        (
            {**LIVE, "endingOffsets": '{"s": {"0": 3}}'},
            "the option 'endingOffsets' names s, but the query reads topic t",
        ),
        (
            {"path": "/data", "startingOffsets": '{"s": {"0": 3}}'},
            "the option 'startingOffsets' names s, but the query reads one topic, which the option 'topic' sets",
        ),
        (
            {**LIVE, "startingOffsets": "newest"},
            "the option 'startingOffsets' is 'newest': write \"earliest\", \"latest\" or offsets by partition as in "
            '{"topic": {"0": 23, "1": -2}}',
        ),
        (
            {"path": "/data", "table": "groups", "retention": "7d"},
            "groups has no option 'retention'; it is one of expirations, disappearances, activity",
        ),
        (
            {"path": "/data", "retention": "7d"},
            "the option 'retention' is for tables: name one with the option 'table'",
        ),
        (
            {"path": "/data", "table": "expirations", "at": "soon"},
            f"at: 'soon' is not a moment: write {_MOMENTS}; also `in 24h` for a time in the future",
        ),
        (
            {**LIVE, "table": "groups", "startingOffsets": "earliest"},
            "the option 'startingOffsets' works only for raw rows, because a table reads its log from the start",
        ),
    ],
)
def test_what_cannot_be_asked(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadOption) as caught:
        asked(options)
    assert caught.value.detail == sentence


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"maxOffsetsPerTrigger": "5"}, "the option 'maxOffsetsPerTrigger' is for streams (readStream)"),
        (
            {"startingOffsets": "latest"},
            "startingOffsets is latest, but only a stream (readStream) finds records there",
        ),
        (
            {"startingOffsets": '{"t": {"0": -1}}'},
            "startingOffsets is latest, but only a stream (readStream) finds records there",
        ),
        (
            {"endingOffsets": '{"t": {"0": -2}}'},
            "endingOffsets is earliest, but there are no records before the earliest offset: write latest, or offsets",
        ),
    ],
)
def test_what_no_batch_can_do(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadOption) as caught:
        asked({**LIVE, **options}).for_batch()
    assert caught.value.detail == sentence


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({**LIVE, "bytesPerTask": "5"}, "the option 'bytesPerTask' is for batch queries (read), not for streams"),
        (
            {"bootstrap": "broker-1:9092", "table": "groups"},
            "a stream returns only raw rows, but a table needs a log from its start: leave out the option "
            "'table', and pass the rows to kafka_records_tables.spark.changes",
        ),
        (
            {"path": "/data", "topic": "t"},
            "a stream reads one topic from brokers: set the options 'bootstrap' and 'topic'",
        ),
    ],
)
def test_what_no_stream_can_do(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadOption) as caught:
        asked(options).for_stream()
    assert caught.value.detail == sentence


def test_a_property_wins_over_that_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=file\nclient.rack=one\n")
    place = asked({**LIVE, "commandConfig": str(file), "Kafka.Client.Id": "option"}).place
    config = place.config()  # type: ignore[union-attr]
    assert (config.client_id, config.client_rack) == ("option", "one")


def test_offsets_in_json() -> None:
    assert bound_of(" Latest", None) == "latest"
    assert bound_of('{"t": {"0": 23, "1": -2, "id": "AAGwcgETRYyWOoFfrfXDaQ"}}', "t") == {0: 23, 1: -2}
    kept = {"t": {"0": 5, "10": 7, "id": "x"}}
    known = NextOffsets.of_json(kept, "t")
    assert (known.offsets, known.topic_id, known.to_json()) == ({0: 5, 10: 7}, "x", kept)
    with pytest.raises(ValueError, match=r"^the checkpoint belongs to t, not to topic s: give each stream its"):
        NextOffsets.of_json(kept, "s")


def test_a_limit_is_shared_out_by_what_waits() -> None:
    start = {0: 0, 1: 100, 2: 5}
    end = {0: 900, 1: 200, 2: 5, 3: 1}
    assert limited(start, end, 2000) == end
    assert limited(start, end, 100) == {0: 89, 1: 109, 2: 5, 3: 1}
    assert limited(start, end, 1) == {0: 1, 1: 101, 2: 5, 3: 1}
    begun = dict(start)
    for _ in range(200):
        begun = limited(begun, end, 10)
    assert begun == end


def test_records_are_decoded_where_their_files_are_read(tmp_path: Path) -> None:
    """The same as Spark does with the source, without Spark: planned in one process, read in another."""
    import pickle

    import pyarrow as pa

    from kafka_records_tables.engines.spark_source import KafkaRecordsSource
    from tests.sources.saved_files import FORMATS, captured, segments

    path = FORMATS["Parquet"](captured("kafka-4.3"), tmp_path)
    options = {"records": "OffsetCommit", "coordinates": "partition,offset", "topic": "__consumer_offsets"}
    source = KafkaRecordsSource({"path": str(path), **options})
    reader = source.reader(source.schema())
    parts = pickle.loads(pickle.dumps([*reader.partitions()]))
    rows = pa.Table.from_batches([batch for part in parts for batch in pickle.loads(pickle.dumps(reader)).read(part)])
    assert rows.column_names == source.schema().names
    assert rows.num_rows == 461 + rows["is_tombstone"].to_pylist().count(True)
    assert rows["error"].null_count == rows.num_rows
    wrong = KafkaRecordsSource({"path": str(segments("kafka-4.3")), **options})
    with pytest.raises(BadOption, match="the option 'records' reads saved rows"):
        wrong.reader(wrong.schema()).partitions()


def test_a_timeout_begins_when_somebody_looks_what_there_is() -> None:
    place = asked({**LIVE, "timeout": "50s"}).place
    assert isinstance(place, Brokers)
    assert place.timeout == timedelta(seconds=50)
    log = BrokerPartition((("b", 1),), place.config(), "t", bytes(16), 0, 0, 1, session=Session(TimeLimit(50)))
    there = pickle.loads(pickle.dumps(place.bare(log)))
    ready = place.ready(there)
    assert isinstance(ready, BrokerPartition)
    assert ready.session.limit is not None
    assert ready.session.end == pytest.approx(log.session.end, abs=1)
