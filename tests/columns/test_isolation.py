"""No row reads another row's bytes, and returned memory has nothing of a row that failed."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_records import registry
from kafka_records_engine.columns import decode_column, decode_record_columns
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import FORMAT, FieldSchema, MessageSchema, StructSchema
from kafka_records_runtime.wire import walker
from tests.columns.buffers import all_bytes, guarded_copies, is_blank, without_nulls
from tests.columns.records import records_of
from tests.columns.reference import check, counted_walks, engine_limits
from tests.columns.rows import Values, batch, broken_row, good_row
from tests.columns.schemas import schemas
from tests.runtime.spec_schemas import language_schemas

pytestmark = pytest.mark.slow

SECRET = b"SECRET!!"
NAMES = [
    *("OffsetCommitValue", "GroupMetadataValue", "ConsumerGroupMemberMetadataValue", "ShareSnapshotValue"),
    *("StreamsGroupTopologyValue", "TransactionLogValue", "MetadataResponse", "FetchResponse", "FetchRequest"),
]
SEEDS = st.integers(0, 2**32 - 1).map(Random)
FEW = pytest.mark.parametrize("few", [0, 48, 1_000_000], ids=["by level", "as is", "by row"])


def messages() -> list[MessageSchema]:
    return [*(registry.message_class(name).CODEC.schema for name in NAMES), *language_schemas().values()]


class Secrets(Values):
    """Messages whose texts, bytes, longs and uuids are all SECRET."""

    def _one(self, base: str) -> Any:
        if base == "string":
            return SECRET.decode()
        if base in ("bytes", "records"):
            return SECRET * self._random.randint(1, 3)
        if base == "int64":
            return int.from_bytes(SECRET, "big")
        return Uuid(SECRET * 2) if base == "uuid" else super()._one(base)

    def _unknown_tags(self, taken: set[int | None]) -> tuple[tuple[int, bytes], ...]:
        return tuple((tag, SECRET) for tag, _ in super()._unknown_tags(taken))


def secret_row(random: Random, message: MessageSchema, version: int) -> bytes:
    return walker.encode(message, Secrets(random, message, version).row(), version)


def assert_no_secret(array: pa.Array) -> None:
    for each in all_bytes(array):
        assert SECRET not in each
        assert SECRET[::-1] not in each  # a long, whose bytes Arrow reverses


# -- rows that fail leave nothing behind ------------------------------------------------------------


@pytest.mark.parametrize(("few", "unknown_tags"), [(0, True), (48, False), (1_000_000, True)])
def test_secrets_of_rows_that_fail_are_nowhere_in_the_result(few: int, unknown_tags: bool) -> None:
    """Good rows without secrets, between rows full of secrets that end too early."""
    random = Random(5)
    told = failed = 0
    for message in messages():
        assert message.versions is not None
        for version in range(message.versions[0], message.versions[1] + 1):
            rows, broken = [], []
            for place in range(12):
                rows.append(good_row(random, message, version))
                secret = secret_row(random, message, version)
                if not secret:
                    continue
                told += SECRET in secret[: len(secret) - 1]
                broken.append(len(rows))
                rows.append(secret[: len(secret) - 1 - place % 2 * random.randrange(len(secret))])
            with engine_limits(few), guarded_copies():
                found = decode_column(message, pa.array(rows), version, unknown_tags=unknown_tags)
            assert sorted(found.errors) == broken
            assert_no_secret(found.values)
            assert not found.bytes_left[broken].any()
            assert not found.has_unknown_tags[broken].any()
            below = without_nulls(found.values)
            assert all(is_blank(below[row].as_py()) for row in broken)
            failed += len(broken)
    assert told > 200
    assert failed > 500


@FEW
def test_a_length_that_reaches_into_the_next_row_gives_nothing_of_it(few: int) -> None:
    """The row is cut at every place, so that its lengths point to the secrets of its neighbour."""
    random = Random(6)
    for message in messages():
        version = message.versions[1] if message.versions else 0
        rows: list[bytes] = []
        for _ in range(3):
            row = good_row(random, message, version)
            for size in range(0, len(row), max(len(row) // 25, 1)):
                rows += [row[:size], secret_row(random, message, version)]
        with engine_limits(few), guarded_copies():
            found = check(message, rows, version, unknown_tags=True)
        assert found.errors.keys() == set(range(0, len(rows), 2))
        assert all(value.as_py() is None for value in found.values[::2])


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(message=st.sampled_from(messages()) | schemas(), random=SEEDS, few=st.sampled_from([0, 48, 10**6]))
def test_neighbours_make_no_difference(message: MessageSchema, random: Random, few: int) -> None:
    """A broken row has the same complete error alone, between good rows and between secrets."""
    version = random.randint(*(message.versions or (0, 0)))
    broken = broken_row(random, message, version, good_row(random, message, version))
    with engine_limits(few), guarded_copies():
        alone = decode_column(message, pa.array([broken]), version, unknown_tags=True)
        for make in (good_row, secret_row):
            before, after = make(random, message, version), make(random, message, version)
            among = decode_column(message, pa.array([before, broken, after]), version, unknown_tags=True)
            assert str(among.values[1].as_py()) == str(alone.values[0].as_py())
            assert str(among.errors.get(1)) == str(alone.errors.get(0))
            assert among.leniencies.get(1) == alone.leniencies.get(0)
            assert among.bytes_left[1] == alone.bytes_left[0]


# -- nothing outside of the bytes -------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    message=st.sampled_from(messages()) | schemas(),
    random=SEEDS,
    size=st.sampled_from([1, 10, 60]),
    few=st.sampled_from([0, 48, 10**6]),
    block=st.sampled_from([0, None]),
)
def test_only_bytes_of_the_batch_are_copied(
    message: MessageSchema, random: Random, size: int, few: int, block: int | None
) -> None:
    rows, versions = batch(random, message, size, damaged=0.7, huge=0.05)
    with engine_limits(few, block), guarded_copies():
        check(message, rows, versions, unknown_tags=True)


BOTH = (0, 0)
INNER = StructSchema("Inner", (FieldSchema("number", "number", "int8", BOTH),))
CLASSIC = StructSchema(
    "Classic",
    (
        FieldSchema("inner", "inner", "Inner", BOTH),
        # Without `flexible`, these have lengths of four and of two bytes, after a section of tags.
        FieldSchema("blob", "blob", "bytes", BOTH),
        FieldSchema("text", "text", "string", BOTH, nullable=BOTH),
    ),
)
MIXED = MessageSchema(
    FORMAT,
    "Mixed",
    BOTH,
    BOTH,
    (INNER, CLASSIC, StructSchema("Mixed", (FieldSchema("all", "all", "[]Classic", BOTH, flexible=BOTH),))),
)


@FEW
@pytest.mark.parametrize("copies", [1, 100])
@pytest.mark.parametrize(
    "tags",
    ["02 0700 0500", "02 0500 0500", "01 ffffffff07 00", "01 ffffffff0f 00"],
    ids=["order", "twice", "max", "-1"],
)
def test_tags_that_only_one_way_of_reading_refuses(tags: str, copies: int, few: int) -> None:
    """`hop` does not check the order of tags, `scan` does. After a refused section of tags, an earlier version read
    bytes from the start of the first row: here they would be a length of 2 GiB."""
    bad = bytes.fromhex("02 01" + tags + "00000001 78 0001 79 00" + "00")
    good = bytes.fromhex("02 01 00" + "00000001 78 0001 79 00" + "00")
    first = bytes.fromhex("7fffffff 7fff") + SECRET
    with engine_limits(few), guarded_copies() as pieces:
        found = check(MIXED, [first, *[bad, good] * copies], 0, unknown_tags=True)
    assert pieces
    assert found.errors.keys() == {0}
    assert len(found.leniencies) == copies


def test_a_row_larger_than_places_of_32_bits_is_left_to_the_walker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of more than 2³¹-1 bytes is possible in `large_binary`; here the limit is lower."""
    monkeypatch.setattr("kafka_records_engine.columns._assembly.MOST_BYTES", 30)
    message = registry.message_class("OffsetCommitValue").CODEC.schema
    rows = [walker.encode(message, {"offset": 7, "metadata": "m" * size}, 1) for size in (0, 4, 5, 9)]
    assert [len(row) for row in rows] == [26, 30, 31, 35]
    with counted_walks() as walked:
        check(message, rows, 1, unknown_tags=False)
    assert walked == [2, 3]


def test_null_slots_are_not_looked_at() -> None:
    """The memory of a null may contain anything; it is not part of a row."""
    message = registry.message_class("OffsetCommitValue").CODEC.schema
    row = walker.encode(message, {"offset": 7}, 3)
    whole = pa.array([row, SECRET * 5, row])
    bits = pa.py_buffer(np.packbits([True, False, True], bitorder="little"))
    data = pa.Array.from_buffers(pa.binary(), 3, [bits, *whole.buffers()[1:]])
    with counted_walks() as walked:
        found = check(message, [row, None, row], 3, unknown_tags=False, column=data)
    assert walked == []
    assert_no_secret(found.values)


def test_records_that_fail_leave_nothing_behind() -> None:
    schemas = records_of("consumer_offsets")
    random = Random(8)
    record = schemas[2]
    key = b"\x00\x02" + walker.encode(record.key, {"group": "g"}, 0)
    secret_key = b"\x00\x02" + walker.encode(record.key, {"group": SECRET.decode()}, 0)
    value = b"\x00\x03" + good_row(random, record.value, 3)
    secret = b"\x00\x03" + secret_row(random, record.value, 3)
    assert SECRET in secret
    found = decode_record_columns(
        schemas,
        pa.array([key, secret_key[:-1], key, SECRET, None, key]),
        pa.array([value, secret, secret[:-1], secret, secret, b"\x00\x63" + SECRET]),
        np.array([True] * 6),
        unknown_tags=True,
    )
    assert sorted(found.errors) == [1, 2, 4, 5]
    for column in found.records.values():
        assert_no_secret(column)
    below = without_nulls(found.records[2])
    assert [is_blank(each.as_py()) for each in below.field("key")] == [False, True, False, True, True, False]
    assert [is_blank(each.as_py()) for each in below.field("value")] == [False, True, True, True, True, True]


def test_the_search_finds_a_secret() -> None:
    """Otherwise the tests above would prove nothing."""
    kind = pa.struct([("a", pa.list_(pa.struct([("b", pa.string()), ("c", pa.int64())])))])
    for hidden in ({"b": "xSECRET!!", "c": 0}, {"b": "", "c": int.from_bytes(SECRET, "big")}):
        with pytest.raises(AssertionError, match=r"SECRET|TERCES"):
            assert_no_secret(pa.array([{"a": [hidden]}], kind))
    array = pa.array([1, None, 3], pa.int64())
    below = pa.Array.from_buffers(pa.int64(), 3, [array.buffers()[0], pa.array([1, 2, 3], pa.int64()).buffers()[1]])
    assert without_nulls(below).to_pylist() == [1, 2, 3]
    assert not is_blank({"a": [0]})
