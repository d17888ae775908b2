"""The error tree: every class pickles, prints its complete text and keeps its attributes."""

from __future__ import annotations

import pickle

import pytest

from kafka_records_runtime import errors
from kafka_records_runtime.errors import DecodeError, EncodeError, KafkaRecordsError

TEXTS: list[tuple[KafkaRecordsError, str]] = [
    (errors.DecodeError("M", 1, "", 0), "M v1 at byte 0: the message cannot be decoded"),
    (
        errors.BufferUnderflow("GroupMetadataValue", 3, "members[2].client_host", 212, 40, 11),
        "GroupMetadataValue v3 at byte 212: members[2].client_host needs 40 bytes, but 11 are left",
    ),
    (errors.BufferUnderflow("M", 1, "a", 2, 1, 0), "M v1 at byte 2: a needs 1 byte, but 0 are left"),
    (errors.UnexpectedNull("M", 1, "a", 2), "M v1 at byte 2: a is null, which this version does not allow"),
    (errors.NegativeLength("M", 1, "a", 2, -2), "M v1 at byte 2: a has the negative length -2"),
    (
        errors.CountTooLarge("M", 1, "a", 2, 9, 3),
        "M v1 at byte 2: a claims 9 elements, but the remaining bytes hold at most 3",
    ),
    (
        errors.StringTooLong("M", 1, "a", 2, 40000),
        "M v1 at byte 2: a is a string of 40000 bytes, more than the limit of 32767",
    ),
    (
        errors.InvalidUtf8("M", 1, "a", 2, "invalid start byte"),
        "M v1 at byte 2: a is not UTF-8: invalid start byte",
    ),
    (
        errors.InvalidVarint("M", 1, "a", 2, "a varint of more than 5 bytes"),
        "M v1 at byte 2: a has a varint of more than 5 bytes",
    ),
    (
        errors.InvalidMarker("M", 1, "a", 2, 7, -1),
        "M v1 at byte 2: a starts with marker 7, but a nullable struct has -1 (null) or 1",
    ),
    (errors.InvalidTag("M", 1, "a", 2, 3, "which is odd"), "M v1 at byte 2: a has tag 3, which is odd"),
    (errors.DuplicateTag("M", 1, "a", 2, 3), "M v1 at byte 2: a has tag 3 twice"),
    (errors.TagOrder("M", 1, "a", 2, 3, 4), "M v1 at byte 2: a has tag 3 after tag 4, but tags must ascend"),
    (
        errors.TagSizeMismatch("M", 1, "a", 2, 3, 9, 8),
        "M v1 at byte 2: a is tag 3 of 9 bytes, but its value takes 8",
    ),
    (errors.TrailingBytes("M", 1, "", 2, 3), "M v1 at byte 2: the message ends here, but is followed by 3 bytes"),
    (errors.EncodeError("M", 1, "a"), "M v1: a cannot be encoded"),
    (errors.FieldNotInVersion("M", 1, "a"), "M v1: a is set, but this version has no such field"),
    (errors.NullNotAllowed("M", 1, ""), "M v1: the message is None, which this version does not allow"),
    (
        errors.ValueOutOfRange("M", 1, "a", "int8", 200, -128, 127),
        "M v1: a is 200, but int8 holds -128 to 127",
    ),
    (
        errors.ValueOutOfRange("M", 1, "a", "int8", -(10**5000), -128, 127),
        "M v1: a is -2**16609, but int8 holds -128 to 127",
    ),
    (errors.WrongType("M", None, "key", "bytes", "str"), "M: key is of type str, expected bytes"),
    (errors.WrongLength("M", 1, "a", 15), "M v1: a has 15 bytes, but a uuid has 16"),
    (errors.TextTooLong("M", 1, "a", 40000), "M v1: a takes 40000 bytes of UTF-8, more than the limit of 32767"),
    (errors.InvalidText("M", 1, "a", 3), "M v1: a has a lone surrogate at character 3"),
    (errors.UnknownField("M", 1, "a", "b"), "M v1: a has the key 'b', which is not a field of it"),
    (
        errors.TagsNotSupported("M", 1, "unknown_tagged_fields"),
        "M v1: unknown_tagged_fields is not empty, but this version has no tagged fields",
    ),
    (
        errors.TagsUnsorted("M", 1, "a", 3, 4),
        "M v1: a has tag 3 after tag 4, but tags must ascend without repeats",
    ),
    (errors.TagClash("M", 1, "a", 3, "topic_id"), "M v1: a has tag 3, which belongs to topic_id"),
    (errors.UnsupportedVersion("M", 7, range(5)), "M has no version 7: its versions are 0 to 4"),
    (errors.UnsupportedVersion("M", 7, range(2, 3)), "M has no version 7: its only version is 2"),
    (errors.UnsupportedVersion("M", 7, range(0)), "M has no version 7: it has no versions"),
    (errors.NullKey(), "the record has no key"),
    (errors.MissingRecordType(1), "the key has 1 byte, but a key starts with an int16 record type"),
    (errors.MissingValueVersion(0), "the value has 0 bytes, but a value starts with an int16 version"),
    (errors.UnexpectedKey(1), "the record has a key of 1 byte, but metadata records have no key"),
    (errors.NullValue(), "the record has no value"),
    (errors.UnknownFrameVersion(2), "the value has the frame version 2 at byte 0, but only version 1 is known"),
    (errors.TruncatedFrame("api key", 1, 1), "the value has 1 byte: the api key at byte 1 is cut off"),
    (
        errors.InvalidFrameNumber("version", 2, "has more than 5 bytes"),
        "the version at byte 2 of the value has more than 5 bytes",
    ),
    (errors.UnknownApiKey(99, 1), "no record of this topic has the api key 99, at byte 1 of the value"),
    (errors.JsonError("M", 1, "a.b", "is missing"), "M v1: a.b is missing"),
    (
        errors.SchemaFormatError("M", 2, 1),
        "the schema of M has format 2, but this runtime reads format 1: generate the package again",
    ),
    (errors.UnknownMessage("M"), "no message is called 'M'"),
    (errors.UnknownApi(9, (1, 2)), "no request here has the api key 9; the known ones are 1, 2"),
]


def subclasses(base: type[KafkaRecordsError]) -> set[type[KafkaRecordsError]]:
    return {base}.union(*(subclasses(each) for each in base.__subclasses__()))


@pytest.mark.parametrize(("error", "text"), TEXTS, ids=lambda value: getattr(type(value), "__name__", None))
def test_text_and_pickle(error: KafkaRecordsError, text: str) -> None:
    assert str(error) == text
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == text
    assert vars(copy) == vars(error)
    assert copy.args == error.args


def with_large_numbers(value: object) -> object:
    """The same argument of an error, with numbers that Python does not print."""
    large = 10**10_000
    if isinstance(value, tuple):
        return tuple(with_large_numbers(each) for each in value)
    if isinstance(value, range):
        return range(-large, large)
    return -large if isinstance(value, int) else value


@pytest.mark.parametrize("error", [error for error, _ in TEXTS], ids=lambda value: type(value).__name__)
def test_numbers_of_ten_thousand_digits_print(error: KafkaRecordsError) -> None:
    large = type(error)(*(with_large_numbers(each) for each in error.args))
    assert len(str(large)) < 300
    if any(isinstance(each, int) for each in error.args):
        assert "-2**33219" in str(large)


def test_a_version_of_ten_thousand_digits() -> None:
    assert str(errors.UnsupportedVersion("M", 10**10_000, range(5))) == (
        "M has no version 2**33219: its versions are 0 to 4"
    )
    assert str(errors.NegativeLength("M", 1, "a", 10**10_000, -(10**10_000))) == (
        "M v1 at byte 2**33219: a has the negative length -2**33219"
    )


def test_every_error_is_in_the_table() -> None:
    families = {KafkaRecordsError, errors.FramingError}
    # Other packages add their own, which are there when another test has imported them.
    known = {each for each in subclasses(KafkaRecordsError) if each.__module__ == errors.__name__}
    assert {type(error) for error, _ in TEXTS} | families >= known


def test_a_wrong_version_belongs_to_both_ways() -> None:
    error = errors.UnsupportedVersion("M", 7, range(5))
    assert isinstance(error, DecodeError)
    assert isinstance(error, EncodeError)
    assert (error.path, error.offset, error.versions) == ("", 0, range(5))


def test_errors_of_values_are_value_errors() -> None:
    for error, _ in TEXTS:
        assert isinstance(error, ValueError | KeyError)
