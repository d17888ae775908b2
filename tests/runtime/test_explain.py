"""Annotated dumps: whole texts for what people look at."""

from __future__ import annotations

from textwrap import dedent

from kafka_records_runtime.records.explain import Line, explain_message, explain_record, explain_text
from tests.runtime.spec_schemas import record_schemas, topic_records

KEY = bytes.fromhex("0001 0001 67 0003 666f6f 00000002")
VALUE = bytes.fromhex("0004 0000000000000064 0000000a 02 6d 00000000000004d2 00")


def text(key: bytes | None, value: bytes | None, folder: str = "consumer_offsets") -> str:
    return explain_text(explain_record(topic_records(folder), key, value))


def test_a_record() -> None:
    assert text(KEY, VALUE) == dedent("""\
        key, 14 bytes
             0  00 01                      int16        record type       1 (OffsetCommit)
        OffsetCommitKey v0, 12 bytes
             0  00 01                      length       group             1
             2  67                         string       group             'g'
             3  00 03                      length       topic             3
             5  66 6f 6f                   string       topic             'foo'
             8  00 00 00 02                int32        partition         2
        value, 25 bytes
             0  00 04                      int16        value version     4
        OffsetCommitValue v4, 23 bytes
             0  00 00 00 00 00 00 00 64    int64        offset            100
             8  00 00 00 0a                int32        leader_epoch      10
            12  02                         length       metadata          1
            13  6d                         string       metadata          'm'
            14  00 00 00 00 00 00 04 d2    int64        commit_timestamp  1234
            22  00                         tag count    tagged_fields     0
        """)


def test_where_it_breaks() -> None:
    assert text(KEY, VALUE[:20]).splitlines()[-3:] == [
        "    13  6d                         string       metadata       'm'",
        "    14  00 00 00 00                                            4 bytes not read",
        "error: OffsetCommitValue v4 at byte 14: commit_timestamp needs 8 bytes, but 4 are left",
    ]


def test_nested_values_nulls_and_long_bytes() -> None:
    schema = record_schemas()["GroupMetadataValue"]
    data = bytes.fromhex(
        "0000 00000001 ffff ffff 00000001 0001 6d 0000 0000 00000007 00000028" + "ab" * 40 + "00000000"
    )
    assert explain_text(explain_message(schema, 0, data)).splitlines() == [
        "GroupMetadataValue v0, 73 bytes",
        "     0  00 00                      length       protocol_type                 0",
        "     2                             string       protocol_type                 ''",
        "     2  00 00 00 01                int32        generation                    1",
        "     6  ff ff                      length       protocol                      null",
        "     8  ff ff                      length       leader                        null",
        "    10  00 00 00 01                count        members                       1",
        "    14  00 01                      length         members[0].member_id        1",
        "    16  6d                         string         members[0].member_id        'm'",
        "    17  00 00                      length         members[0].client_id        0",
        "    19                             string         members[0].client_id        ''",
        "    19  00 00                      length         members[0].client_host      0",
        "    21                             string         members[0].client_host      ''",
        "    21  00 00 00 07                int32          members[0].session_timeout  7",
        "    25  00 00 00 28                length         members[0].subscription     40",
        "    29  ab ab ab ab ab ab ab ab …  bytes          members[0].subscription     " + "ab" * 30 + "… (40 bytes)",
        "    69  00 00 00 00                length         members[0].assignment       0",
        "    73                             bytes          members[0].assignment       (empty)",
    ]


def test_markers_and_tags() -> None:
    schema = record_schemas()["StreamsGroupMemberMetadataValue"]
    data = bytes.fromhex("00 00 01 01 00000000 00000000 01 01 01ffff00 01 01 09 02 abcd")
    lines = [(line.bytes, line.type, line.path, line.value) for line in explain_message(schema, 0, data)]
    assert ("01", "marker", "user_endpoint", "present") in lines
    assert ("ff ff", "uint16", "  user_endpoint.port", "65535") in lines
    assert lines[-4:] == [
        ("01", "tag count", "tagged_fields", "1"),
        ("09", "tag", "tagged_fields", "9"),
        ("02", "tag size", "tagged_fields", "2"),
        ("ab cd", "unknown tag", "tagged_fields[9]", "abcd"),
    ]
    null = bytes.fromhex("00 00 01 01 00000000 00000000 01 ff 01 00")
    assert Line(13, "ff", "user_endpoint", "marker", "null") in list(explain_message(schema, 0, null))


def test_tombstones_and_missing_parts() -> None:
    assert text(KEY, None).splitlines()[-1] == "no value: a tombstone"
    assert text(None, None) == "no key\nno value: a tombstone\n"
    assert text(b"\x01", b"") == dedent("""\
        key, 1 byte
             0  01                                        1 byte not read
        error: the key has 1 byte, but a key starts with an int16 record type
        value, 0 bytes
        error: the value has 0 bytes, but a value starts with an int16 version
        """)


def test_unknown_types_and_versions() -> None:
    assert text(bytes.fromhex("7fff 0102"), VALUE) == dedent("""\
        key, 4 bytes
             0  7f ff                      int16        record type    32767 (unknown record type)
             2  01 02                                                  2 bytes not read
        value, 25 bytes
             0  00 04                      int16        value version  4
             2  00 00 00 00 00 00 00 64 …                              23 bytes not read
        """)
    assert text(KEY, bytes.fromhex("0005 aabb")).splitlines()[-4:] == [
        "     0  00 05                      int16        value version  5",
        "OffsetCommitValue v5, 2 bytes",
        "     0  aa bb                                                  2 bytes not read",
        "error: OffsetCommitValue has no version 5: its versions are 0 to 4",
    ]
    group = bytes.fromhex("0003 0001 67")
    assert text(group, b"\x00\x07").splitlines()[-2:] == [
        "ConsumerGroupMetadataValue v7, 0 bytes",
        "error: ConsumerGroupMetadataValue has no version 7: its only version is 0",
    ]


def test_records_are_read_as_kafka_reads_them() -> None:
    lines = text(bytes.fromhex("0002 0001 ff aabb"), None).splitlines()
    assert lines[-5:] == [
        "     0  00 01                      length       group        1",
        "     2                             leniency     group        invalid_utf8",
        "     2  ff                         string       group        '\ufffd'",
        "     3  aa bb                                                2 bytes left over",
        "no value: a tombstone",
    ]


def test_a_strict_explanation_ends_where_the_strict_decoder_does() -> None:
    schema = record_schemas()["GroupMetadataKey"]
    assert [line.value for line in explain_message(schema, 0, b"\x00\x01\xff")][-1] == (
        "GroupMetadataKey v0 at byte 2: group is not UTF-8: invalid start byte"
    )
    assert list(explain_message(schema, 3, b"")) == [
        Line(None, "", "", "", "GroupMetadataKey v3, 0 bytes"),
        Line(None, "", "", "error", "GroupMetadataKey has no version 3: its only version is 0"),
    ]
