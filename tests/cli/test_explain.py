"""`explain`: golden outputs, the forms of hex that it accepts, and where it stops."""

from __future__ import annotations

import pytest

from tests.cli.golden import check_golden
from tests.cli.running import run

KEY = "0001000561646d696e00066f726465727300000000"
COMMIT = "000000000000002a000000070000000001988f2b6f40"
TAGGED = f"00000002{'00' * 8}0163021234"
SHARE_GROUP = ("--topic", "__consumer_offsets", "--key", "000b000167", "--value", "0000000000025cdd0f2b0000000100")


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [
        ("key-alone", ("--topic", "__consumer_offsets", "--key", KEY), 0),
        ("tombstone", ("--topic", "__consumer_offsets", "--key", KEY, "--value", "null"), 0),
        ("record", SHARE_GROUP, 0),
        ("value-alone", ("--topic", "__consumer_offsets", "--value", "0003000863"), 0),
        ("unknown-type", ("--topic", "__share_group_state", "--key", "00631234", "--value", "00005678"), 0),
        ("unknown-version", ("--topic", "__consumer_offsets", "--key", KEY, "--value", "00091234"), 1),
        ("broken-value", ("--topic", "__consumer_offsets", "--key", KEY, "--value", "0003000000000000002a00"), 1),
        ("broken-key", ("--topic", "__transaction_state", "--key", "0000000361"), 1),
        ("short-key", ("--topic", "__consumer_offsets", "--key", "00"), 1),
        ("short-value", ("--topic", "__consumer_offsets", "--key", KEY, "--value", "00"), 1),
        ("bytes-left", ("--topic", "__consumer_offsets", "--key", f"{KEY}beef"), 0),
        ("message", ("--message", "OffsetCommitValue", "--version", "3", COMMIT), 0),
        ("message-with-tags", ("--message", "ShareGroupMetadataValue", "--version", "0", TAGGED), 0),
        ("broken-message", ("--message", "OffsetCommitValue", "--version", "3", COMMIT[:-2]), 1),
        ("empty-message", ("--message", "EndTxnMarker", "--version", "0", ""), 1),
    ],
)  # fmt: skip
def test_kept_dumps(name: str, arguments: tuple[str, ...], status: int) -> None:
    ran = run("explain", *arguments)
    assert ran.status == status
    check_golden(f"explain-{name}", ran.out)


@pytest.mark.parametrize(
    "text", ["0x0000002A", "00 00 00 2a", "00:00:00:2a", "0000\n002a\n", " 0000002a ", "0X0000002a"]
)
def test_the_forms_of_hex(text: str) -> None:
    plain = run("explain", "--message", "EndTxnMarker", "--version", "0", "0000002a")
    assert run("explain", "--message", "EndTxnMarker", "--version", "0", text) == plain
    assert run("explain", "--message", "EndTxnMarker", "--version", "0", "-", standard_input=text) == plain


def test_key_or_value_from_standard_input() -> None:
    *start, key, _, value = SHARE_GROUP
    plain = run("explain", *SHARE_GROUP)
    assert plain.status == 0
    assert run("explain", *start, "-", "--value", value, standard_input=key) == plain
    assert run("explain", *start, key, "--value", "-", standard_input=value) == plain


def test_a_value_without_its_key() -> None:
    ran = run("explain", "--topic", "__consumer_offsets", "--value", "0003000863")
    assert ran.err == "note: without --key, the record type is unknown, so the value is shown as bytes\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--message", "EndTxnMarker", "--version", "0", "0g"), "the message is not hex: 'g' after 1 digits"),
        (
            ("--message", "EndTxnMarker", "--version", "0", "000"),
            "the message is not hex: 3 digits, but each byte needs two",
        ),
        (("--topic", "__consumer_offsets", "--key", "xy"), "--key is not hex: 'x' after 0 digits"),
        (
            ("--message", "ShareSnapshot", "--version", "0", "00"),
            "no message is called ShareSnapshot; did you mean ShareSnapshotKey or ShareSnapshotValue?",
        ),
        (
            ("--message", "OffsetCommitValue", "--version", "5", "00"),
            "OffsetCommitValue has no version 5: its versions are 0 to 4",
        ),
    ],
)
def test_arguments_that_make_no_sense(arguments: tuple[str, ...], message: str) -> None:
    assert run("explain", *arguments) == (2, "", f"kafka-records: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "one of the arguments --topic --message is required, or - for lines of dump --bytes"),
        (("--topic", "__consumer_offsets"), "--topic needs --key, --value or both"),
        (
            ("--topic", "orders", "--key", "00"),
            "orders is not a topic of Kafka's coordinators: those are __consumer_offsets, __share_group_state and "
            "__transaction_state",
        ),
        (
            ("--topic", "__consumer_offsets", "--key", "-", "--value", "-"),
            "only one of --key and --value can be read from standard input",
        ),
        (
            ("--topic", "__consumer_offsets", "--key", "null", "--value", "0003"),
            "--key cannot be null, but --value can; leave --key out to explain only the value",
        ),
        (
            ("--topic", "__consumer_offsets", "00"),
            "--version and bytes without an option need --message; with --topic, use --key and --value",
        ),
        (("--message", "EndTxnMarker", "00"), "--message needs --version"),
        (
            ("--message", "EndTxnMarker", "--version", "0"),
            "--message needs the bytes in hex, or - for standard input",
        ),
        (
            ("--message", "EndTxnMarker", "--version", "0", "--key", "00"),
            "--key and --value need --topic; with --message, give the bytes without an option",
        ),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str) -> None:
    status, out, err = run("explain", *arguments)
    assert (status, out) == (2, "")
    assert err.splitlines()[0] == f"kafka-records explain: error: {message}"
