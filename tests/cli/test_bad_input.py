"""Broken input: one clear line each, all other rows printed, everything counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import Ran, run
from tests.cli.segment_bytes import ATTRIBUTES_AT, batch, commit, write_segment

GIVE = "give the data directory of a broker (log.dirs), a folder in it, or a .log file"

FIRST = batch(0, [commit("a", 1), commit("b", 2)])
SECOND = batch(2, [commit("c", 3)])
THIRD = batch(3, [commit("d", 4)])

COORDINATORS = "__consumer_offsets, __share_group_state and __transaction_state"


def offsets(ran: Ran) -> list[int]:
    return [json.loads(line)["offset"] for line in ran.lines]


# -- nothing to read ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["dump", "counts"])
def test_a_source_that_is_not_there(command: str, tmp_path: Path) -> None:
    path = tmp_path / "gone"
    assert run(command, str(path)) == (2, "", f"kafka-records: {path}: there is no such file or directory\n")


@pytest.mark.parametrize("command", [("dump",), ("counts",), ("table", "current_offsets"), ("table", "log_ends")])
def test_of_several_sources_one_is_not_there(command: tuple[str, ...], tmp_path: Path) -> None:
    """Other sources are read, in the same way as if one of their files were damaged."""
    folder = write_segment(tmp_path, FIRST).parent
    alone, both = run(*command, str(folder)), run(*command, str(tmp_path / "gone"), str(folder))
    assert (alone.status, both.status, both.out) == (0, 1, alone.out)
    told = f"{tmp_path / 'gone'}: there is no such file or directory (nothing in it is read)"
    assert both.err.splitlines().count(told) == 1


def test_an_empty_directory(tmp_path: Path) -> None:
    assert run("dump", str(tmp_path)) == (
        2,
        "",
        f"kafka-records: {tmp_path}: the directory is empty: {GIVE}\n",
    )


def test_a_directory_without_logs(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    message = "there is no segment file in this directory, nor in a folder <topic>-<partition> below it"
    assert run("dump", str(tmp_path)) == (2, "", f"kafka-records: {tmp_path}: {message}\n")


@pytest.mark.parametrize("stray", [None, "truth.json"])
def test_a_directory_above_that_of_the_logs(tmp_path: Path, stray: str | None) -> None:
    """Also if other files there look like saved rows."""
    write_segment(tmp_path / "broker-1" / "data", FIRST)
    if stray:
        (tmp_path / stray).write_text("{}")
    message = "there is no segment file in this directory, nor in a folder <topic>-<partition> below it"
    for above in (tmp_path, tmp_path / "broker-1"):
        told = f"{above}: {message}; give the folder that contains logs: {tmp_path}/broker-1/data"
        assert run("dump", str(above)) == (2, "", f"kafka-records: {told}\n")


def test_a_file_that_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.index"
    path.write_bytes(bytes(8))
    assert run("dump", str(path)) == (
        2,
        "",
        f"kafka-records: {path}: this is not a .log file: {GIVE}\n",
    )


def test_a_topic_that_is_none_of_the_three(tmp_path: Path) -> None:
    write_segment(tmp_path, FIRST)
    message = f"orders is not a topic of Kafka's coordinators: those are {COORDINATORS}"
    status, out, err = run("dump", str(tmp_path), "--topic", "orders")
    assert (status, out) == (2, "")
    assert err.splitlines()[0] == f"kafka-records dump: error: {message}"


@pytest.mark.parametrize("arguments", [("",), ("x", "--topic", "__consumer_offsets", "")])
def test_an_empty_source_is_not_the_current_directory(arguments: tuple[str, ...]) -> None:
    ran = run("dump", *arguments)
    assert ran.status == 2
    assert ran.err.splitlines()[0] == ("kafka-records dump: error: argument SOURCE: must not be empty")


def test_only_other_topics(tmp_path: Path) -> None:
    write_segment(tmp_path, FIRST, folder="orders-0")
    message = f"{tmp_path}: contains only orders, but none of the coordinators' topics {COORDINATORS}"
    assert run("dump", str(tmp_path)) == (2, "", f"kafka-records: {message}\n")


def test_other_topics_beside_the_three_are_left_out_and_counted(tmp_path: Path) -> None:
    for folder in ("orders-0", "orders-1", "payments-0", "__consumer_offsets-4"):
        write_segment(tmp_path, FIRST, folder=folder)
    ran = run("dump", str(tmp_path))
    assert (ran.status, offsets(ran)) == (0, [0, 1])
    assert ran.err.splitlines()[0] == f"note: 2 other topics left out: read are {COORDINATORS}"


def test_a_topic_that_is_not_there(tmp_path: Path) -> None:
    write_segment(tmp_path, FIRST)
    message = f"{tmp_path}: there is no log of topic __transaction_state here, only logs of __consumer_offsets"
    assert run("dump", str(tmp_path), "--topic", "__transaction_state") == (2, "", f"kafka-records: {message}\n")


def test_a_file_outside_of_its_folder_needs_the_topic(tmp_path: Path) -> None:
    path = write_segment(tmp_path, FIRST, folder="backup")
    message = f"{path}: this file is not in a folder named <topic>-<partition>"
    asks = f"kafka-records: {message}; say which topic it holds (--topic NAME)\n"
    assert run("dump", str(path)) == (2, "", asks)
    assert run("report", str(path)) == (2, "", f"kafka-records: {message}: put it into such a folder\n")
    ran = run("dump", str(path), "--topic", "__consumer_offsets")
    assert (ran.status, offsets(ran)) == (0, [0, 1])
    assert json.loads(ran.lines[0])["topic"] == "__consumer_offsets"


# -- damaged files -----------------------------------------------------------------------------------------------------


def test_not_a_log_segment(tmp_path: Path) -> None:
    path = write_segment(tmp_path, b"a file of text, long enough to be taken for a batch, which it is not")
    status, out, err = run("dump", str(path))
    assert (status, out) == (1, "")
    assert err.splitlines() == [
        f"{path}: byte 0: not a log segment: offset 6998706423909916783 cannot be in a file named for offset 0 (68 "
        "bytes not read)",
        "0 records and 0 transaction markers in 1 file of 1 partition",
        "1 damaged place in the files: 0 records known to be lost, 68 bytes not read",
    ]


def test_a_wrong_crc(tmp_path: Path) -> None:
    damaged = bytearray(SECOND)
    damaged[-1] ^= 1
    path = write_segment(tmp_path, FIRST, bytes(damaged), THIRD)
    ran = run("dump", str(path))
    assert (ran.status, offsets(ran)) == (1, [0, 1, 3])
    assert ran.err.splitlines() == [
        f"{path}: byte {len(FIRST)}, batch at offset 2: {_crc_text(ran)} (1 record, {len(SECOND)} bytes skipped)",
        "3 records and 0 transaction markers in 1 file of 1 partition",
        f"1 damaged place in the files: 1 record known to be lost, {len(SECOND)} bytes not read",
    ]


def _crc_text(ran: Ran) -> str:
    text = ran.err.splitlines()[0].partition("batch at offset 2: ")[2].partition(" (")[0]
    assert text.startswith("wrong CRC: 0x")
    return text


def test_a_batch_cut_short_before_others(tmp_path: Path) -> None:
    path = write_segment(tmp_path, FIRST, SECOND[:-4], THIRD)
    ran = run("dump", str(path))
    assert ran.status == 1
    assert offsets(ran)[:2] == [0, 1]
    assert f"{path}: byte {len(FIRST)}, batch at offset 2: " in ran.err


def test_an_append_that_was_cut_short_is_a_note(tmp_path: Path) -> None:
    path = write_segment(tmp_path, FIRST, SECOND[:-4])
    ran = run("dump", str(path))
    assert (ran.status, offsets(ran)) == (0, [0, 1])
    assert ran.err.splitlines() == [
        f"note: {path}: byte {len(FIRST)}, batch at offset 2: the batch has {len(SECOND)} bytes, but {len(SECOND) - 4} "
        f"are left (an append that was cut short, {len(SECOND) - 4} bytes not read)",
        "2 records and 0 transaction markers in 1 file of 1 partition",
    ]


def test_an_unknown_codec(tmp_path: Path) -> None:
    unknown = batch(2, [commit("c", 3)], attributes=6)
    assert unknown[ATTRIBUTES_AT] == 6
    path = write_segment(tmp_path, FIRST, unknown, THIRD)
    ran = run("dump", str(path))
    assert (ran.status, offsets(ran)) == (1, [0, 1, 3])
    assert ran.err.splitlines() == [
        f"{path}: byte {len(FIRST)}, batch at offset 2: codec 6 is unknown (0 records delivered, 1 lost)",
        "3 records and 0 transaction markers in 1 file of 1 partition",
        f"1 damaged place in the files: 1 record known to be lost, {len(unknown)} bytes not read",
    ]


# -- records -----------------------------------------------------------------------------------------------------------


def test_many_records_without_a_key_are_summed_up(tmp_path: Path) -> None:
    key, value = commit("c", 3)
    assert value is not None
    path = write_segment(tmp_path, batch(0, [(None, b"x")] * 1003), batch(1003, [(key, value[:12])]))
    ran = run("dump", str(path))
    assert (ran.status, offsets(ran)) == (1, [*range(1004)])
    lines = ran.err.splitlines()
    assert lines[999:] == [
        f"{path}: byte 0, batch at offset 0: record at offset 999: the record has no key (shown with its bytes)",
        f"{path}: byte {len(batch(0, [(None, b'x')] * 1003))}, batch at offset 1003: record at offset 1003: "
        "OffsetCommitValue v3 at byte 8 after its version: leader_epoch needs 4 bytes, but 2 are left (shown with its "
        "bytes)",
        "1004 records and 0 transaction markers in 1 file of 1 partition",
        "3 more records with an error of the kind NullKey: see the field error of their lines",
        "1004 records could not be decoded",
    ]


def test_a_record_that_does_not_parse(tmp_path: Path) -> None:
    key, value = commit("c", 3)
    assert value is not None
    broken = batch(2, [commit("b", 9), (key, value[:12])])
    path = write_segment(tmp_path, FIRST, broken, batch(4, [commit("d", 4)]))
    ran = run("dump", str(path))
    message = "OffsetCommitValue v3 at byte 8: leader_epoch needs 4 bytes, but 2 are left"
    told = message.replace("byte 8", "byte 8 after its version")
    assert (ran.status, offsets(ran)) == (1, [0, 1, 2, 3, 4])
    assert ran.err.splitlines() == [
        f"{path}: byte {len(FIRST)}, batch at offset 2: record at offset 3: {told} (shown with its bytes)",
        "5 records and 0 transaction markers in 1 file of 1 partition",
        "1 record could not be decoded",
    ]
    assert json.loads(ran.lines[3]) == {
        "topic": "__consumer_offsets",
        "partition": 0,
        "offset": 3,
        "timestamp": 1000,
        "record_type": 1,
        "key": {"type": 1, "data": {"group": "c", "topic": "t", "partition": 0}},
        "value": {"version": 3, "hex": value[:12].hex()},
        "producer_id": -1,
        "is_transactional": False,
        "control": None,
        "opened": {},
        "topic_names": {},
        "error": {
            "part": "value",
            "reason": "BufferUnderflow",
            "version": 3,
            "path": "leader_epoch",
            "byte_offset": 8,
            "message": message,
        },
    }


@pytest.mark.parametrize(
    ("key", "value", "shown_key", "shown_value", "record_type", "part", "message"),
    [
        (None, b"\0\0", None, {"version": 0, "hex": "0000"}, None, "key", "the record has no key"),
        (
            b"\1",
            None,
            {"type": None, "hex": "01"},
            None,
            None,
            "key",
            "the key has 1 byte, but a key starts with an int16 record type",
        ),
        (
            b"\0\x02\0\x05a",
            b"\0",
            {"type": 2, "hex": "0002000561"},
            {"version": None, "hex": "00"},
            2,
            "key",
            "GroupMetadataKey v0 at byte 2: group needs 5 bytes, but 1 is left",
        ),
        (
            b"\0\x02\0\x01a",
            b"\0",
            {"type": 2, "data": {"group": "a"}},
            {"version": None, "hex": "00"},
            2,
            "value",
            "the value has 1 byte, but a value starts with an int16 version",
        ),
    ],
)
def test_records_without_their_frame(
    tmp_path: Path,
    key: bytes | None,
    value: bytes | None,
    shown_key: object,
    shown_value: object,
    record_type: int | None,
    part: str,
    message: str,
) -> None:
    path = write_segment(tmp_path, batch(0, [(key, value)]))
    ran = run("dump", str(path))
    record = json.loads(ran.out)
    assert (record["key"], record["value"], record["record_type"]) == (shown_key, shown_value, record_type)
    assert (record["error"]["part"], record["error"]["message"]) == (part, message)
    assert ran.status == 1
    told = message.replace("at byte 2:", "at byte 2 after its type:")
    assert ran.err.splitlines()[0] == (
        f"{path}: byte 0, batch at offset 0: record at offset 0: {told} (shown with its bytes)"
    )


def test_an_unknown_version_is_an_error_and_an_unknown_type_is_none(tmp_path: Path) -> None:
    records = [(b"\0\x63ab", b"\0\0c"), (b"\0\x63ab", None), (b"\0\x02\0\x01g", b"\0\x09xyz")]
    path = write_segment(tmp_path, batch(0, records))
    ran = run("dump", str(path))
    lines = [json.loads(line) for line in ran.lines]
    message = "GroupMetadataValue has no version 9: its versions are 0 to 4"
    error = {"part": "value", "reason": "UnsupportedVersion", "version": 9, "path": "", "byte_offset": 0}
    assert [(line["record_type"], line["key"], line["value"], line["error"]) for line in lines] == [
        (99, {"type": 99, "hex": "00636162"}, {"version": 0, "hex": "000063"}, None),
        (99, {"type": 99, "hex": "00636162"}, None, None),
        (2, {"type": 2, "data": {"group": "g"}}, {"version": 9, "hex": "000978797a"}, error | {"message": message}),
    ]
    assert ran.status == 1
    assert ran.err.splitlines() == [
        f"{path}: byte 0, batch at offset 0: record at offset 2: {message} (shown with its bytes)",
        "3 records and 0 transaction markers in 1 file of 1 partition",
        "1 record could not be decoded",
        "of a type this build does not know: 99 (2)",
        "a newer Kafka may have written these: to read them, generate a package from its specs with "
        "kafka-records-codegen, and pass it with --package",
    ]


def test_types_of_early_access_releases_have_names(tmp_path: Path) -> None:
    path = write_segment(tmp_path, batch(0, [(b"\0\x09ab", b"\0\0c"), (b"\0\x12a", None), (b"\0\x63", None)]))
    assert run("dump", str(path)).err.splitlines()[1] == (
        "of a type this build does not know: 18 StreamsGroupPartitionMetadata, early access (1), "
        "9 ShareGroupPartitionMetadata, early access (1), 99 (1)"
    )
    counts = [json.loads(line) for line in run("counts", str(path), "--format", "json").lines]
    assert [(row["record_type"], row["record"]) for row in counts] == [
        (9, "(ShareGroupPartitionMetadata, early access)"),
        (18, "(StreamsGroupPartitionMetadata, early access)"),
        (99, "(unknown type)"),
    ]


def test_counts_of_keys_without_a_type_are_no_success(tmp_path: Path) -> None:
    path = write_segment(tmp_path, batch(0, [(None, b"x"), (b"\0", None), commit("a", 1)]))
    ran = run("counts", str(path), "--format", "json")
    assert [(row["record"], row["records"]) for row in map(json.loads, ran.lines)] == [
        ("OffsetCommit", 1),
        ("(key without a type)", 2),
    ]
    assert (ran.status, ran.err) == (1, "2 records without a type in the key\n")


def test_control_records_that_end_nothing_are_counted(tmp_path: Path) -> None:
    path = write_segment(tmp_path, FIRST, batch(2, [(b"\0\0\0\x02", b"\0\0")], attributes=0x20))
    ran = run("dump", str(path))
    assert (ran.status, offsets(ran)) == (0, [0, 1])
    assert ran.err.splitlines()[-2:] == [
        "2 records and 0 transaction markers in 1 file of 1 partition",
        "1 control record left out: they do not end a transaction",
    ]


def test_what_kafka_accepts_is_accepted_and_counted(tmp_path: Path) -> None:
    key, value = commit("c", 3)
    assert key is not None
    assert value is not None
    records = [(key + b"\0", value + b"\0\0"), (key.replace(b"\0\x01c", b"\0\x01\xff"), None)]
    path = write_segment(tmp_path, batch(0, records))
    ran = run("dump", str(path))
    assert [json.loads(line)["key"]["data"]["group"] for line in ran.lines] == ["c", "\ufffd"]
    assert ran.status == 0
    assert ran.err.splitlines() == [
        "2 records and 0 transaction markers in 1 file of 1 partition",
        "ignored after a key or value, as in Kafka: 3 bytes in 1 record",
        "accepted as Kafka accepts it: invalid_utf8 (1)",
    ]
