"""`dump`, compared with the output of Kafka's own tools for the same captured files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafka_records.schemas.consumer_protocol import CONSUMER_PROTOCOL_ASSIGNMENT, CONSUMER_PROTOCOL_SUBSCRIPTION
from kafka_records_runtime.errors import DecodeError
from kafka_records_runtime.messages.json_form import to_json
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.wire.walker import decode
from tests.cli.kafka_texts import as_numbers
from tests.cli.running import Ran

Dumped = Callable[[str], Ran]

DUMP_TOOL = {"kafka-4.3": "dump", "kafka-4.3-expiry": "dump", "kafka-2.8": "dump-4.3"}
"""The folder with the output of the 4.3.1 dump tool."""

_RECORD = re.compile(
    r"\| offset: (?P<offset>-?\d+) (?:CreateTime|LogAppendTime|NoTimestampType): (?P<timestamp>-?\d+) .*?"
    r"(?:endTxnMarker: (?P<marker>\w+) .*|key: (?P<key>.*?) payload: (?P<payload>.*))"
)


class Evidence(NamedTuple):
    """A record as both tools show it; `body` is `"key":…,"value":…` as text."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    body: str
    producer_id: int
    is_transactional: bool
    control: str | None


def of_kafka(folder: Path) -> Iterator[Evidence]:
    """The records in the output of Kafka's dump tool."""
    for path in folder.iterdir():
        place = re.fullmatch(r"(.*)-(\d+)\.\d{20}\.txt", path.name)
        assert place is not None
        producer_id, is_transactional = -1, False
        for line in path.read_text("utf-8").split("\n"):
            batch = re.search(r"producerId: (-?\d+) .* isTransactional: (true|false)", line)
            if batch is not None:
                producer_id, is_transactional = int(batch[1]), batch[2] == "true"
            record = _RECORD.fullmatch(line)
            if record is not None:
                marker = record["marker"]
                key, value = ("null", "null") if marker else (as_numbers(record["key"]), as_numbers(record["payload"]))
                yield Evidence(
                    place[1],
                    int(place[2]),
                    int(record["offset"]),
                    int(record["timestamp"]),
                    f'"key":{key},"value":{value}',
                    producer_id,
                    is_transactional,
                    marker.lower() if marker else None,
                )


def of_ours(line: str) -> Evidence:
    """A line of `dump`, with its key and value character for character."""
    parsed = json.loads(line)
    body = '"key":' + line.partition(',"key":')[2].rpartition(',"producer_id":')[0]
    names = ("producer_id", "is_transactional", "control")
    return Evidence(
        parsed["topic"],
        parsed["partition"],
        parsed["offset"],
        parsed["timestamp"],
        body,
        *(parsed[name] for name in names),
    )


@pytest.mark.parametrize("name", DUMP_TOOL)
def test_every_record_is_what_the_dump_tool_of_kafka_prints(dumped: Dumped, topics_dir: Path, name: str) -> None:
    expected = sorted(of_kafka(topics_dir / name / DUMP_TOOL[name]))
    ours = [of_ours(line) for line in dumped(name).lines]
    assert [each[:3] for each in ours] == [each[:3] for each in expected]
    for our, their in zip(ours, expected, strict=True):
        if our != their:
            assert our._replace(body=_with_opened_members(our.body)) == their._replace(body=_sorted(their.body))


def _sorted(body: str) -> str:
    return json.dumps(json.loads(f"{{{body}}}"), sort_keys=True)


def _with_opened_members(body: str) -> str:
    """The dump tool decodes the bytes of members of classic consumer groups; our dump shows them as they are."""
    record: dict[str, Any] = json.loads(f"{{{body}}}")
    assert record["key"]["type"] == 2
    value = record["value"]["data"]
    assert value["protocolType"] == "consumer"
    for member in value["members"]:
        member["subscription"] = _opened(CONSUMER_PROTOCOL_SUBSCRIPTION, member["subscription"])
        member["assignment"] = _opened(CONSUMER_PROTOCOL_ASSIGNMENT, member["assignment"])
    return json.dumps(record, sort_keys=True)


def _opened(schema: MessageSchema, text: str) -> Any:
    from base64 import b64decode

    raw = b64decode(text)
    version = min(int.from_bytes(raw[:2], "big", signed=True), 3)
    try:
        return to_json(schema, decode(schema, raw[2:], version, lenient=True)[0], version)
    except DecodeError:
        return text


@pytest.mark.parametrize(
    ("name", "formatter", "topic"),
    [
        ("kafka-4.3", "OffsetsMessageFormatter", "__consumer_offsets"),
        ("kafka-4.3", "GroupMetadataMessageFormatter", "__consumer_offsets"),
        ("kafka-4.3", "ShareGroupMessageFormatter", "__consumer_offsets"),
        ("kafka-4.3", "ShareGroupStateMessageFormatter", "__share_group_state"),
        ("kafka-4.3", "TransactionLogMessageFormatter", "__transaction_state"),
        ("kafka-4.3-expiry", "OffsetsMessageFormatter", "__consumer_offsets"),
        ("kafka-4.3-expiry", "GroupMetadataMessageFormatter", "__consumer_offsets"),
    ],
)
def test_every_record_is_what_the_console_formatter_of_kafka_prints(
    dumped: Dumped, topics_dir: Path, name: str, formatter: str, topic: str
) -> None:
    bodies = {(each.topic, each.partition, each.offset): each for each in map(of_ours, dumped(name).lines)}
    lines = (topics_dir / name / "console" / f"{formatter}.jsonl").read_text("utf-8").splitlines()
    assert lines
    for line in lines:
        parsed = json.loads(line)
        shown = bodies[topic, parsed["partition"], parsed["offset"]]
        assert shown.timestamp == parsed["timestamp"]
        assert f"{{{shown.body}}}" == line.partition('"formatter":')[2].removesuffix("}")


@pytest.mark.parametrize(
    ("name", "summary"),
    [
        ("kafka-4.3", "990 records and 9 transaction markers in 43 files of 11 partitions\n"),
        ("kafka-4.3-expiry", "88 records and 0 transaction markers in 4 files of 4 partitions\n"),
    ],
)
def test_nothing_is_wrong_with_what_a_broker_wrote(dumped: Dumped, name: str, summary: str) -> None:
    assert (dumped(name).status, dumped(name).err) == (0, summary)


def test_the_zeros_of_a_preallocated_file_are_a_note(dumped: Dumped, topics_dir: Path) -> None:
    path = topics_dir / "kafka-2.8" / "segments" / "__consumer_offsets-1" / "00000000000000000189.log"
    status, _, err = dumped("kafka-2.8")
    notes = [line for line in err.splitlines() if str(path) in line]
    assert status == 0
    assert len(notes) == 1
    assert re.fullmatch(
        rf"note: {re.escape(str(path))}: byte \d+: only zeros from here "
        r"\(pre-allocated, \d+ bytes without records\)",
        notes[0],
    )
    assert err.splitlines()[-1] == "549 records and 15 transaction markers in 11 files of 5 partitions"


def test_lines_come_by_topic_partition_and_offset(dumped: Dumped) -> None:
    places = [of_ours(line)[:3] for line in dumped("kafka-4.3").lines]
    assert places == sorted(places)


def test_records_below_a_raised_log_start_are_shown(dumped: Dumped, topics_dir: Path) -> None:
    starts = (topics_dir / "kafka-4.3" / "segments" / "log-start-offset-checkpoint").read_text().split("\n")[2:]
    topic, partition, start = next(line for line in starts if line).split()
    offsets = [
        shown.offset
        for shown in map(of_ours, dumped("kafka-4.3").lines)
        if (shown.topic, shown.partition) == (topic, int(partition))
    ]
    assert min(offsets) < int(start)
