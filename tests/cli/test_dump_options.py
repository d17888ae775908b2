"""Output of `dump` on request: selected records, bytes for `explain`, decoded members, names of topics."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.wire.walker import default_value, encode
from kafka_records_tables.commands.catalog import Catalog
from tests.acme import acme_package
from tests.cli.running import Ran, run
from tests.cli.segment_bytes import batch, commit, write_segment

Dumped = Callable[[str], Ran]

GROUPS = ["a", "ab", "\x1b[31mred", "two\nlines", "\u202eturned", "größe"]


@pytest.fixture
def source(tmp_path: Path) -> str:
    """Two commits for each of GROUPS, a transaction with its marker, and a record of an unknown type."""
    records = [commit(group, number) for number in (1, 2) for group in GROUPS]
    pending = batch(12, [commit("a", 3)], attributes=0x10, producer_id=7)
    marker = batch(13, [(b"\0\0\0\x01", b"\0\0\0\0\0\x09")], attributes=0x30, producer_id=7)
    unknown = batch(14, [(b"\0\x63\0\x01a", b"\0\0x")])
    write_segment(tmp_path, batch(0, records), pending, marker, unknown)
    return str(tmp_path)


def lines(ran: Ran) -> list[dict[str, Any]]:
    assert ran.status == 0, ran.err
    return [json.loads(line) for line in ran.lines]


def offsets(ran: Ran) -> list[int]:
    return [line["offset"] for line in lines(ran)]


# -- which records -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), [*range(15)]),
        (("--offset", "3"), [3]),
        (("--offset", "11.."), [11, 12, 13, 14]),
        (("--offset", "..1"), [0, 1]),
        (("--offset", "12..13"), [12, 13]),
        (("--group", "a"), [0, 6, 12]),
        (("--group", "\x1b[31mred"), [2, 8]),
        (("--group", "two\nlines", "--group", "\u202eturned"), [3, 4, 9, 10]),
        (("--group", "größe", "--offset", "6.."), [11]),
        (("--group", "x"), []),
        (("--transactional-id", "a"), []),
        (("--type", "1"), [*range(13)]),
        (("--type", "OffsetCommit", "--offset", "12.."), [12]),
        (("--type", "99"), [14]),
        (("--type", "GroupMetadata", "--type", "99"), [14]),
        (("--type", "0"), []),
        (("--type", "99", "--group", "a"), []),
    ],
)
def test_the_records_that_are_asked_for(source: str, options: tuple[str, ...], expected: list[int]) -> None:
    ran = run("dump", source, *options)
    assert offsets(ran) == expected
    markers = expected.count(13)
    count = "1 record" if len(expected) - markers == 1 else f"{len(expected) - markers} records"
    told = ran.err.splitlines()
    are = "1 transaction marker" if markers == 1 else f"{markers} transaction markers"
    assert told[0] == f"{count} and {are} in 1 file of 1 partition"
    assert (f"not asked for: {15 - len(expected)} of 15 records and transaction markers" in told) == bool(options)


@pytest.mark.parametrize(
    ("offset", "expected", "files"),
    [("0..1", [0, 1], 1), ("3..", [3, 4, 5, 6, 7], 2), ("4", [4], 1), ("5..6", [5, 6], 2), ("9..", [], 1)],
)
def test_only_the_files_that_may_hold_an_offset_are_read(
    tmp_path: Path, offset: str, expected: list[int], files: int
) -> None:
    folder = write_segment(tmp_path, batch(0, [commit("a", 1)] * 3)).parent
    for base in (3, 6):
        size = 3 if base == 3 else 2
        (folder / f"{base:020}.log").write_bytes(batch(base, [commit("a", 1)] * size))
    ran = run("dump", str(tmp_path), "--offset", offset)
    assert offsets(ran) == expected
    count = f"{files} file" if files == 1 else f"{files} files"
    assert f" in {count} of 1 partition" in ran.err


def test_ids_of_other_topics(topics_dir: Path) -> None:
    segments = str(topics_dir / "kafka-4.3" / "segments")
    whole = lines(run("dump", segments))
    ids = {line["key"]["data"].get("transactionalId") for line in whole if line["topic"] == "__transaction_state"}
    chosen = sorted(ids)[0]
    shown = lines(run("dump", segments, "--transactional-id", chosen))
    expected = [line for line in whole if line["key"] and line["key"]["data"].get("transactionalId") == chosen]
    assert shown == expected != []
    share = next(line for line in whole if line["topic"] == "__share_group_state")["key"]["data"]["groupId"]
    shown = lines(run("dump", segments, "--group", share))
    expected = [
        line
        for line in whole
        if line["key"] and share in (line["key"]["data"].get("groupId"), line["key"]["data"].get("group"))
    ]
    assert shown == expected
    assert {line["topic"] for line in shown} == {"__consumer_offsets", "__share_group_state"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--type", "OfsetCommit"), "--type: no record type is called OfsetCommit; did you mean OffsetCommit or "
         "LegacyOffsetCommit?"),
        (("--offset", "-3"), "argument --offset: '-3' is neither an offset nor FROM..TO, FROM.. or ..TO"),
        (("--offset", ".."), "argument --offset: '..' is neither an offset nor FROM..TO, FROM.. or ..TO"),
        (("--offset", "3..2"), "argument --offset: '3..2' is an empty range: it ends before it begins"),
        (("--topic", "__consumer_ofsets"), "__consumer_ofsets is not a topic of Kafka's coordinators: those are "
         "__consumer_offsets, __share_group_state and __transaction_state; did you mean __consumer_offsets?"),
        (("--grup", "x"), "unrecognized arguments: --grup; did you mean --group?"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(source: str, options: tuple[str, ...], message: str) -> None:
    status, out, err = run("dump", source, *options)
    assert (status, out) == (2, "")
    assert err.splitlines()[0] == f"kafka-records dump: error: {message}"


def test_a_type_that_is_not_close_to_any(source: str) -> None:
    message = run("dump", source, "--type", "xyzzy").err.splitlines()[0]
    start = "kafka-records dump: error: --type: no record type is called xyzzy: there are AbortTransactionRecord"
    assert message.startswith(start)
    assert message.endswith(", ZkMigrationStateRecord")


def test_a_command_that_there_is_not() -> None:
    ran = run("dmp", "x")
    assert ran.status == 2
    assert ran.err.splitlines()[0] == (
        "kafka-records: error: argument COMMAND: invalid choice: 'dmp'; did you mean dump?"
    )


# -- bytes -------------------------------------------------------------------------------------------------------------


def test_bytes_are_those_of_the_log(source: str) -> None:
    shown = lines(run("dump", source, "--bytes"))
    for line, (key, value) in zip(shown[:6], [commit(group, 1) for group in GROUPS], strict=True):
        assert key is not None
        assert value is not None
        assert (line.pop("raw_key"), line.pop("raw_value")) == (key.hex(), value.hex())
    assert (shown[13]["raw_key"], shown[13]["raw_value"]) == ("00000001", "000000000009")
    assert shown[:6] == lines(run("dump", source))[:6]


def test_explain_takes_what_dump_gives(source: str) -> None:
    dumped = run("dump", source, "--bytes", "--offset", "12..")
    explained = run("explain", "-", standard_input=dumped.out)
    assert explained.status == 0
    parts = explained.out.split("\n\n")
    assert [part.split("\n")[0] for part in parts] == [f"__consumer_offsets-0, offset {at}" for at in (12, 13, 14)]
    key, value = commit("a", 3)
    assert key is not None
    assert value is not None
    by_hand = run("explain", "--topic", "__consumer_offsets", "--key", key.hex(), "--value", value.hex())
    assert parts[0] == f"__consumer_offsets-0, offset 12\n{by_hand.out.rstrip(chr(10))}"
    assert [line.split() for line in parts[1].split("\n")[1:]] == [
        ["ControlRecordTypeSchema", "v0,", "2", "bytes"],
        ["0", "00", "01", "int16", "type_", "1"],
        ["EndTxnMarker", "v0,", "4", "bytes"],
        ["0", "00", "00", "00", "09", "int32", "coordinator_epoch", "9"],
    ]
    assert parts[2].split("\n")[2].endswith("  99 (unknown record type)")


def test_explain_reads_newer_transaction_markers_as_the_newest_known_version() -> None:
    raw = {"raw_key": "00050001", "raw_value": "00070000000901"}
    place = {"topic": "__consumer_offsets", "partition": 0, "offset": 3, "control": "commit"}
    explained = run("explain", "-", standard_input=f"{json.dumps(place | raw)}\n")
    assert explained.status == 0
    assert [line.split() for line in explained.lines[2:]] == [
        ["0", "00", "01", "int16", "type_", "1"],
        ["EndTxnMarker", "v0,", "5", "bytes"],
        ["0", "00", "00", "00", "09", "int32", "coordinator_epoch", "9"],
        ["4", "01", "1", "byte", "left", "over"],
    ]


def test_explain_of_a_broken_record_from_dump(tmp_path: Path) -> None:
    key, value = commit("c", 3)
    assert value is not None
    write_segment(tmp_path, batch(0, [(key, value[:12]), (None, None)]))
    dumped = run("dump", str(tmp_path), "--bytes")
    explained = run("explain", "-", standard_input=dumped.out)
    assert explained.status == 1
    assert "error: OffsetCommitValue v3 at byte 8: leader_epoch needs 4 bytes, but 2 are left" in explained.out
    assert explained.out.endswith("\nno key\nno value: a tombstone\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}\n", "line 1 of standard input is not a line of dump"),
        ("\n[1]\n", "line 2 of standard input is not a line of dump"),
        ("0001\n", "line 1 of standard input is not a line of dump"),
        (
            '{"topic":"__consumer_offsets","partition":0,"offset":1,"control":null}\n',
            "line 1 of standard input has no raw_key and raw_value: add them with dump --bytes",
        ),
        (
            '{"topic":"__consumer_offsets","partition":0,"offset":1,"control":null,"raw_key":"x","raw_value":null}\n',
            "line 1 of standard input has a raw_key or raw_value that is not hex",
        ),
    ],
)
def test_lines_that_are_none_of_dump(text: str, message: str) -> None:
    assert run("explain", "-", standard_input=text) == (2, "", f"kafka-records: {message}\n")


# -- what else a line says ---------------------------------------------------------------------------------------------


def _text(text: str) -> bytes:
    return pack(">h", len(text)) + text.encode()


def _bytes(data: bytes) -> bytes:
    return pack(">i", len(data)) + data


def classic_group(
    protocol_type: str, subscription: bytes, assignment: bytes, protocol: str = "range"
) -> tuple[bytes, bytes]:
    """A GroupMetadata record (type 2, value version 3) with one member."""
    member = _text("m") + pack(">h", -1) + _text("c") + _text("/h") + pack(">ii", 1, 2)
    member += _bytes(subscription) + _bytes(assignment)
    head = b"\0\x03" + _text(protocol_type) + pack(">i", 1) + _text(protocol) + _text("m") + pack(">q", 5)
    return b"\0\x02" + _text("g"), head + pack(">i", 1) + member


SUBSCRIPTION = pack(">i", 1) + _text("t") + pack(">i", -1)
OPENED_SUBSCRIPTION = {"topics": ["t"], "userData": None}


@pytest.mark.parametrize(
    ("protocol_type", "subscription", "assignment", "opened"),
    [
        (
            "consumer",
            b"\0\0" + SUBSCRIPTION,
            b"\0\0" + pack(">iiii", 0, -1, 0, 0),
            {
                "members[0].subscription": {"version": 0, "data": OPENED_SUBSCRIPTION},
                "members[0].assignment": {"version": 0, "data": {"assignedPartitions": [], "userData": None}},
            },
        ),
        ("consumer", b"\xff\xff" + SUBSCRIPTION, b"", {}),
        ("consumer", b"\0\0" + SUBSCRIPTION[:-1], b"\0", {}),
        ("sr", b"\0\0" + SUBSCRIPTION, b"\0\0", {}),
        (
            "connect",
            b"\0\x01" + _text("http://w/") + pack(">q", 5) + _bytes(b"\0\0\0\0" + _text("m") + _text("u") + bytes(12)),
            b"\0\0",
            {
                "members[0].subscription": {
                    "version": 1,
                    "data": {"url": "http://w/", "configOffset": 5, "allocation": "AAAAAAABbQABdQAAAAAAAAAAAAAAAA=="},
                },
                "members[0].subscription.allocation": {
                    "version": 0,
                    "data": {"error": 0, "leader": "m", "leaderUrl": "u", "configOffset": 0, "assignment": []},
                },
            },
        ),
    ],
)
def test_members_of_classic_groups_are_opened(
    tmp_path: Path, protocol_type: str, subscription: bytes, assignment: bytes, opened: dict[str, Any]
) -> None:
    write_segment(tmp_path, batch(0, [classic_group(protocol_type, subscription, assignment)]))
    (line,) = lines(run("dump", str(tmp_path)))
    assert line["opened"] == opened
    member = line["value"]["data"]["members"][0]
    assert (b64decode(member["subscription"]), b64decode(member["assignment"])) == (subscription, assignment)


def test_user_data_of_streams_is_opened(tmp_path: Path) -> None:
    info = pack(">i", 2) + bytes(16) + pack(">iii", 0, 0, 0)
    for user_data, shown in ((info, 2), (info[:-1], None), (pack(">i", 12) + info[4:], None)):
        subscription = b"\0\0" + SUBSCRIPTION[:-4] + _bytes(user_data)
        write_segment(tmp_path, batch(0, [classic_group("consumer", subscription, b"", "stream")]))
        (line,) = lines(run("dump", str(tmp_path)))
        assert line["opened"]["members[0].subscription"]["data"]["topics"] == ["t"]
        opened = line["opened"].get("members[0].subscription.userData")
        assert (opened and (opened["version"], opened["data"]["userEndPoint"])) == (shown and (shown, ""))


def test_a_newer_version_is_read_as_the_highest(tmp_path: Path) -> None:
    newest = SUBSCRIPTION + pack(">ii", 0, 7) + pack(">h", -1)
    write_segment(tmp_path, batch(0, [classic_group("consumer", b"\0\x09" + newest + b"more", b"")]))
    (line,) = lines(run("dump", str(tmp_path)))
    data = {**OPENED_SUBSCRIPTION, "ownedPartitions": [], "generationId": 7, "rackId": None}
    assert line["opened"] == {"members[0].subscription": {"version": 9, "data": data}}


def test_classic_members_of_consumer_groups_are_opened(dumped: Dumped) -> None:
    found = 0
    for line in map(json.loads, dumped("kafka-4.3").lines):
        classic = ((line["value"] or {}).get("data") or {}).get("classicMemberMetadata")
        for number, protocol in enumerate((classic or {}).get("supportedProtocols", [])):
            opened = line["opened"][f"classicMemberMetadata.supportedProtocols[{number}].metadata"]
            assert opened["version"] == int.from_bytes(b64decode(protocol["metadata"])[:2], "big")
            assert opened["data"]["topics"]
            found += 1
    assert found


def test_names_of_topic_ids(tmp_path: Path) -> None:
    orders, gone = Uuid(b"the id of orders"), Uuid(b"of another topic")
    for folder, text in {
        "orders-0": "not a metadata file\n",
        "orders-1": f"version: 0\ntopic_id: {orders}\n",
        "payments-0": f"version: 0\ntopic_id: {Uuid(b'id of payments..')}\n",
    }.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "partition.metadata").write_text(text)
    (tmp_path / "returns-0" / "partition.metadata").mkdir(parents=True)
    key, _ = commit("g", 1)
    value = b"\0\x04" + pack(">qi", 7, -1) + b"\x01" + pack(">q", 1000) + b"\x01\x00\x10"
    records = [(key, value + bytes(each)) for each in (orders, gone, bytes(16))]
    path = write_segment(tmp_path, batch(0, records))
    shown = lines(run("dump", str(path.parent)))
    assert [line["topic_names"] for line in shown] == [{str(orders): "orders"}, {}, {}]
    assert shown[0]["value"]["data"]["topicId"] == str(orders)


# -- packages of one's own ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A generated package that Python finds."""
    with acme_package(tmp_path_factory.mktemp("packages"), "acme_of_dump") as registry:
        yield registry.__name__.partition(".")[0]


def test_a_package_of_ones_own(acme: str, tmp_path: Path) -> None:
    catalog = Catalog(acme)
    folder = catalog.folders[0]
    number, record = next(iter(import_module(f"{acme}.schemas.{folder}").RECORDS.items()))
    version = record.value.versions[1]
    key = pack(">h", number) + encode(record.key, default_value(record.key), 0)
    value = pack(">h", version) + encode(record.value, default_value(record.value), version)
    write_segment(tmp_path, batch(0, [(key, value), (key, None)]), folder=f"__{folder.replace('_', '-')}-0")
    write_segment(tmp_path, batch(0, [(key, value)]), folder="elsewhere-0")
    whole = run("dump", str(tmp_path), "--package", acme, "--bytes")
    first, tombstone = lines(whole)
    assert (first["record_type"], tombstone["value"]) == (number, None)
    assert first["value"]["version"] == version
    assert whole.err.splitlines()[0] == (
        f"note: 1 other topic left out: read are the topics of {acme} ({', '.join(catalog.folders)})"
    )
    named = run("dump", str(tmp_path), "--package", f"{acme}.{folder}", "--topic", "elsewhere", "--type", record.name)
    assert [line["key"] for line in lines(named)] == [first["key"]]
    counted = run("counts", str(tmp_path), "--package", acme, "--format", "json")
    assert json.loads(counted.lines[0])["record"] == record.name
    explained = run("explain", "--package", acme, "-", standard_input=whole.out)
    assert explained.status == 0
    assert f"({record.name})" in explained.out


def test_packages_that_cannot_be(acme: str, tmp_path: Path) -> None:
    write_segment(tmp_path, batch(0, [commit("a", 1)]))
    message = "Python finds no package of this name generated by kafka-records-codegen: add its directory to PYTHONPATH"
    for name in ("no_such_package", "json", "..", "a b"):
        ran = run("dump", str(tmp_path), "--package", name)
        assert ran == (2, "", f"kafka-records: --package {name}: {message}\n")
    ran = run("dump", str(tmp_path), "--package", f"{acme}.nothing_here")
    assert ran.status == 2
    assert ran.err.startswith(
        f"kafka-records: --package {acme}.nothing_here: {acme} has no records in the folder nothing_"
    )
    ran = run("dump", str(tmp_path), "--package", acme)
    assert ran.status == 2
    assert ran.err.startswith(
        f"kafka-records: {tmp_path}: contains only __consumer_offsets, but none of the topics of {acme} ("
    )
