"""Brokers that answer something other than requested, or far too much: none of it is used."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers import fetching
from kafka_records_engine.sources._brokers.answer_sizes import largest_answer
from kafka_records_engine.sources._brokers.cluster import LATEST, Cluster
from kafka_records_engine.sources._brokers.failures import ConnectionLost
from kafka_records_engine.sources._brokers.requests_sent import (
    FETCH,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from kafka_records_engine.sources._brokers.secrets_hidden import HIDDEN, without_password
from kafka_records_engine.sources._brokers.tls import context_of
from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.group_requests import GroupRequests
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.protocol import Context
from kafka_records_tables.commands.main import main
from tests.cli.segment_bytes import batch, commit
from tests.sources.fake_broker import QUICK, TOPIC, FakeBroker, fake_brokers

TWO_GIB = struct.pack(">i", 0x7FFFFFFF)


def records(partition: int, offset: int) -> bytes:
    """A log of three batches."""
    return b"".join(batch(each, [commit("g", each)]) for each in range(offset, 3))


def read(log: BrokerPartition) -> tuple[list[int], list[str], list[int]]:
    """Offsets, damage and holes of a log partition."""
    context = Context(log.topic, log.partition)
    offsets = [each for rows in log.batches(context, ["offset"]) for each in rows.column("offset").to_pylist()]
    return offsets, [str(each) for each in context.findings if each.severity == "damage"], context.log.holes


# -- Metadata ----------------------------------------------------------------------------------------------------------


def test_metadata_without_the_topic_is_an_error() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        for topics in ([], [broker.topic("another")]):
            broker.answers[METADATA] = lambda asked, topics=topics: broker.metadata(topics)  # type: ignore[misc]
            with pytest.raises(LogSourceError) as raised:
                LiveBrokers(broker.address, QUICK).partitions(TOPIC)
            assert str(raised.value) == (f"{broker.address}: its response to Metadata lacks topic {TOPIC}")


def test_a_partition_with_a_negative_number_is_refused() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.leaders = {-3: 1}
        with pytest.raises(LogSourceError, match="a partition with a negative number"):
            LiveBrokers(broker.address, QUICK).partitions(TOPIC)


@pytest.mark.parametrize(
    "host",
    [
        "",
        ".",
        "a..b",
        "x" * 64,
        "x" * 10_000,
        "a b",
        "a\x00b",
        "\x1b[2J",
        "evil/../host",
        "ä" * 300,
        "xn--\u202e",
    ],
    ids=ascii,
)
def test_hosts_that_no_resolver_takes_end_in_a_sentence(host: str) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.answers[METADATA] = lambda asked: broker.metadata([broker.topic()], host)
        with pytest.raises(LogSourceError) as raised:
            LiveBrokers(broker.address, QUICK).partitions(TOPIC)
        assert f"{TOPIC}-0: its leader cannot be asked: " in str(raised.value)
        assert str(raised.value).isprintable()
        assert len(str(raised.value)) < 1500


@pytest.mark.parametrize("port", [-1, 0, 65536, 0x7FFFFFFF])
def test_ports_that_there_are_not_end_in_a_sentence(port: int) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        answer = broker.metadata([broker.topic()])
        answer["brokers"][0]["port"] = port
        broker.answers[METADATA] = lambda asked: answer
        with pytest.raises(LogSourceError, match="it is not a host name with a port"):
            LiveBrokers(broker.address, QUICK).partitions(TOPIC)


# -- ListOffsets -------------------------------------------------------------------------------------------------------


def offsets(topic: str, partition: int, offset: int) -> dict[str, Any]:
    return {"topics": [{"name": topic, "partitions": [{"partition_index": partition, "offset": offset}]}]}


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ({"topics": []}, "without this partition"),
        (offsets(TOPIC, 7, 3), "without this partition"),
        (offsets("another", 0, 3), "without this partition"),
        (offsets(TOPIC, 0, -1), "with the offset -1"),
        (offsets(TOPIC, 0, -(1 << 63)), "with the offset -9223372036854775808"),
    ],
)
def test_ends_that_are_none_are_unknown(answer: dict[str, Any], what: str) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.answers[LIST_OFFSETS] = lambda asked: answer
        with pytest.raises(LogSourceError) as raised:
            LiveBrokers(broker.address, QUICK).partitions(TOPIC)
        assert str(raised.value) == (
            f"{broker.address}: {TOPIC}-0: its leader {broker.address} answers ListOffsets {what}, for 0.4 s"
        )


def test_ends_of_the_other_broker_are_taken_and_the_lie_is_damage() -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (honest, liar):
        honest.end = 3
        honest.records = records
        liar.answers[LIST_OFFSETS] = lambda asked: offsets(TOPIC, 0, 1_000_000)
        found = [read(log) for log in LiveBrokers(honest.address, QUICK).partitions(TOPIC)]
        assert found[0] == ([0, 1, 2], [], [])
        assert found[1][0] == []
        assert found[1][1] == [
            f"{honest.address} {TOPIC}-1: its leader {liar.address} answers ListOffsets without this partition, "
            "for 0.4 s (nothing of it is read)"
        ]


# -- Fetch -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        lambda broker: broker.fetched(records(0, 0), topic_id=b"y" * 16),
        lambda broker: broker.fetched(records(0, 0), partition=1),
        lambda broker: {"responses": []},
    ],
    ids=["another topic", "another partition", "nothing"],
)
def test_records_of_another_log_are_not_taken(answer: Callable[[FakeBroker], dict[str, Any]]) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3
        broker.answers[FETCH] = lambda asked: answer(broker)
        (log,) = LiveBrokers(broker.address, QUICK).partitions(TOPIC)
        given, damage, holes = read(log)
        assert (given, holes) == ([], [-1])
        (found,) = damage
        assert "its response to Fetch lacks __consumer_offsets-0, which was requested, for 0.4 s" in found
        assert found.endswith("(offsets 0 to 2 are not read)")


@pytest.mark.parametrize(
    ("size", "what"),
    [
        (
            1_000_000_000,
            "its size says 1000000012 bytes, but its CRC is right for {0} bytes (1 record, {0} bytes skipped)",
        ),
        (
            0x7FFFFF00,
            "size 2147483392 is more than the 1073741824 bytes that are read as one batch ({} bytes to the end of the "
            "file not read, an unknown number of records)",
        ),
    ],
)
def test_a_last_batch_that_claims_more_than_there_is_is_damage_of_its_partition(size: int, what: str) -> None:
    # The size of the batch is damaged: the broker sends what it has, regardless of the requested size.
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (damaged, sound):
        last = bytearray(batch(2, [commit("g", 2)]))
        last[8:12] = struct.pack(">i", size)
        damaged.end = sound.end = 3
        damaged.records = lambda partition, offset: (records(0, offset)[: -len(last)] if offset < 2 else b"") + last
        sound.records = records
        asked: list[int] = []
        honest = damaged.answer_of(FETCH)

        def fetch(fields: dict[str, Any]) -> Any:
            asked.append(fields["max_bytes"])
            return honest(fields)

        damaged.answers[FETCH] = fetch
        config = ClientConfig(patience_ms=5000)
        one, two = (read(log) for log in LiveBrokers(sound.address, config).partitions(TOPIC))
        assert one[0] == [0, 1]
        assert one[1] == [f"{damaged.address} {TOPIC}-0: batch at offset 2: {what.format(len(last))}"]
        assert one[2] == [1]
        assert two == ([0, 1, 2], [], [])
        assert len(asked) < 8


@pytest.mark.parametrize(
    ("size", "what"),
    [(1_000_000_000, "cut off: the broker has no more than"), (0x7FFFFF00, "size 2147483392 is more than")],
)
def test_a_last_batch_that_a_broker_stops_at_is_damage(size: int, what: str) -> None:
    # As in Kafka: the broker sends the bytes of the file, and finds nothing at the offset of the batch.
    with fake_brokers(FakeBroker()) as (broker,):
        last = bytearray(batch(2, [commit("g", 2)]))
        last[8:12] = struct.pack(">i", size)
        broker.end = 3
        broker.records = lambda partition, offset: records(0, offset)[: -len(last)] + last if offset < 2 else b""
        (log,) = LiveBrokers(broker.address, ClientConfig(patience_ms=5000)).partitions(TOPIC)
        context = Context(TOPIC, 0)
        given = [each for rows in log.batches(context, ["offset"]) for each in rows.column("offset").to_pylist()]
        assert (given, context.log.holes) == ([0, 1], [1])
        assert [(each.severity, each.base_offset, each.what.startswith(what)) for each in context.findings] == [
            ("damage", 2, True)
        ]


@pytest.mark.parametrize("noted", [0, 1, 2])
def test_records_may_be_beyond_a_high_watermark_noted_before_they_were_read(noted: int) -> None:
    # A new leader's high watermark advances between the two steps of Partition.readRecords.
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end, broker.records = 3, records
        broker.answers[FETCH] = lambda asked: broker.fetched(records(0, 0), high_watermark=noted)
        (log,) = LiveBrokers(broker.address, QUICK).partitions(TOPIC)
        assert read(log) == ([0, 1, 2], [], [])


def test_a_batch_beyond_the_high_watermark_with_a_gap_before_it_has_a_damaged_offset() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3
        sent = records(0, 0)[: -len(records(0, 2))] + batch(90, [commit("g", 2)])
        broker.answers[FETCH] = lambda asked: broker.fetched(sent, high_watermark=1)
        (log,) = LiveBrokers(broker.address, QUICK).partitions(TOPIC)
        given, damage, _ = read(log)
        assert given == [0, 1]
        assert "offset 90 cannot be in a log that ends at 2" in damage[0]


def test_a_batch_that_never_fits_ends_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_LARGEST_FETCH", 1 << 22)
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 1
        large = batch(0, [(b"key", bytes(8 << 20))])
        asked: list[int] = []

        def fetch(fields: dict[str, Any]) -> Any:
            asked.append(fields["max_bytes"])
            return broker.fetched(large[: fields["max_bytes"]])

        broker.answers[FETCH] = fetch
        config = ClientConfig(fetch_bytes=1 << 20, patience_ms=10_000)
        (log,) = LiveBrokers(broker.address, config).partitions(TOPIC)
        given, damage, holes = read(log)
        assert (given, holes) == ([], [-1])
        (found,) = damage
        assert "cut off: the broker has no more than 4194304 bytes of it" in found
        assert asked == [1 << 20, 1 << 21, 1 << 22, 1 << 22, 1 << 22]


def test_the_command_says_so_and_ends_with_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3
        broken = bytearray(records(0, 0))
        broken[-len(records(0, 2)) + 8 : -len(records(0, 2)) + 12] = struct.pack(">i", 1_000_000_000)
        broker.records = lambda partition, offset: bytes(broken) if offset < 2 else bytes(broken)[-len(records(0, 2)) :]
        for command in (["dump"], ["table", "current_offsets", "--format", "json"], ["counts"]):
            assert main([*command, "--bootstrap", broker.address, "--topic", TOPIC]) == 1, command
            printed = capsys.readouterr()
            assert "batch at offset 2: its size says 1000000012 bytes, but its CRC is right for" in printed.err
            assert printed.out


# -- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [METADATA, LIST_OFFSETS])
def test_an_answer_that_claims_two_gib_is_not_read(name: str) -> None:
    what = "it announces a response of 2147483647 bytes, but what was requested"
    with fake_brokers(FakeBroker()) as (broker,):
        cluster = Cluster([("127.0.0.1", broker.port)], ClientConfig())
        topic = cluster.topic(TOPIC)
        broker.answers[name] = lambda asked: TWO_GIB + bytes(1000)
        if name == METADATA:
            with pytest.raises(ConnectionLost, match=what):
                cluster.topic(TOPIC)
        else:
            assert what in str(cluster.offsets(topic, [0], LATEST)[0])


def test_a_fetch_that_claims_two_gib_is_damage() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3
        broker.answers[FETCH] = lambda asked: TWO_GIB
        (log,) = LiveBrokers(broker.address, ClientConfig(patience_ms=2000)).partitions(TOPIC)
        given, damage, holes = read(log)
        assert (given, holes) == ([], [-1, 0])
        assert damage[0].startswith(
            f"{broker.address} {TOPIC}-0: batch at offset 0: it announces a response of 2147483647"
        )
        assert damage[-1].endswith("(offsets 1 to 2 are not read)")


def test_a_batch_larger_than_what_was_asked_for_is_asked_for_once_more() -> None:
    # Brokers send at least one complete batch, even a large one (KIP-74).
    large = batch(0, [(b"k" * 10, b"v" * (3 << 20))])
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 1
        broker.records = lambda partition, offset: large
        (log,) = LiveBrokers(broker.address, ClientConfig(fetch_bytes=1000)).partitions(TOPIC)
        assert read(log) == ([0], [], [])
        assert broker.asked.count(FETCH) == 2


def test_sizes_are_bounded_by_what_was_asked_for() -> None:
    of_two = largest_answer(LIST_OFFSETS, {"topics": [{"name": "t", "partitions": [{}, {}]}]})
    assert of_two - largest_answer(LIST_OFFSETS, {"topics": [{"name": "t", "partitions": [{}]}]}) == 64
    assert largest_answer(METADATA, {"topics": [{"name": "t"}]}) < largest_answer(METADATA, {"topics": None})
    assert largest_answer(METADATA, {"topics": None}) < 300 << 20
    assert largest_answer(FETCH, {"max_bytes": 1 << 20}) == 2 << 20


# -- groups ------------------------------------------------------------------------------------------------------------


def test_offsets_of_another_group_are_not_taken() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.answers[OFFSET_FETCH] = lambda asked: {"groups": [{"group_id": "another", "topics": []}]}
        with pytest.raises(LogSourceError, match="no coordinator reports group billing, for"):
            GroupRequests(broker.address, QUICK).fetch({"billing": None})
        broker.answers[FIND_COORDINATOR] = lambda asked: {"coordinators": []}
        with pytest.raises(LogSourceError, match="no coordinator for group billing is available"):
            GroupRequests(broker.address, QUICK).fetch({"billing": None})


# -- secrets -----------------------------------------------------------------------------------------------------------

PASSWORD = "s3cret+/Päss word"


def guarded() -> ClientConfig:
    return ClientConfig(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", username="ann", password=PASSWORD, patience_ms=2000
    )


@pytest.mark.parametrize(
    "echo",
    [
        PASSWORD,
        f"wrong password for ann: '{PASSWORD.upper()}'",
        b64encode(PASSWORD.encode()).decode(),
        b64encode(f"\0ann\0{PASSWORD}".encode()).decode(),
        b64encode(f"ann:{PASSWORD}".encode()).decode(),
        PASSWORD.encode().hex(),
        PASSWORD[::-1],
        "s3cret%2B/P%C3%A4ss%20word",
    ],
)
def test_an_error_that_echoes_the_password_is_not_shown(
    echo: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.answers[SASL_AUTHENTICATE] = lambda asked: {"error_code": 58, "error_message": echo, "auth_bytes": b""}
        with pytest.raises(LogSourceError) as raised:
            LiveBrokers(broker.address, guarded()).topics()
        assert str(raised.value) == (f"{broker.address}: rejected this password for user 'ann' (PLAIN): {HIDDEN}")
        broker.answers[SASL_HANDSHAKE] = lambda asked: {"error_code": 33, "mechanisms": [echo]}
        with pytest.raises(LogSourceError, match="a text that repeats the password is not shown"):
            LiveBrokers(broker.address, guarded()).topics()
    assert PASSWORD not in caplog.text


def test_a_host_name_that_holds_the_password_is_not_shown() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        config = ClientConfig(
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            username="u",
            password="hunter2",
            patience_ms=500,
        )
        broker.answers[METADATA] = lambda asked: broker.metadata([broker.topic()], "hunter2.invalid")
        with pytest.raises(LogSourceError) as raised:
            LiveBrokers(broker.address, config).partitions(TOPIC)
        assert "hunter2" not in str(raised.value)


def test_other_texts_of_brokers_are_shown() -> None:
    assert without_password("Authentication failed: invalid credentials", guarded()) == (
        "Authentication failed: invalid credentials"
    )
    assert without_password("anything", ClientConfig()) == "anything"


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["truststore", "keystore"])
def test_a_store_without_an_end_is_refused(name: str) -> None:
    config = ClientConfig(security_protocol="SSL", **{f"{name}_location": "/dev/zero"})  # type: ignore[arg-type]
    with pytest.raises(LogSourceError) as raised:
        context_of(config)
    assert str(raised.value) == (
        f"/dev/zero: cannot be used as ssl.{name}.location: it has more than 16 MiB: give another file"
    )


def test_a_properties_file_without_an_end_is_refused() -> None:
    with pytest.raises(LogSourceError, match="/dev/zero: cannot be read: it has more than 16 MiB"):
        ClientConfig.read("/dev/zero")
