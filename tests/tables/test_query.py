"""Queries over rows: parsing texts, and applying a query to rows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_tables import read_tables, selection
from kafka_records_tables.near_names import UnknownColumn, has_words, near
from kafka_records_tables.query import Condition, QueryError, condition, milliseconds, query_of
from kafka_records_tables.selection import Selection
from kafka_records_tables.tables import TABLES

OFFSETS, COMMITS, TRANSACTIONS = TABLES["current_offsets"], TABLES["offset_commits"], TABLES["transactions"]
NOW = 1_769_860_800_000


# -- texts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("offset>=100", Condition("offset", ">=", 100)),
        (" offset  <  -7 ", Condition("offset", "<", -7)),
        ("offset==1", Condition("offset", "=", 1)),
        ("offset<>1", Condition("offset", "!=", 1)),
        ("group_id=a b", Condition("group_id", "=", "a b")),
        ('group_id=" a "', Condition("group_id", "=", " a ")),
        ("metadata=", Condition("metadata", "=", "")),
        ("metadata='", Condition("metadata", "=", "'")),
        ("metadata~x=y\nz", Condition("metadata", "~", "x=y\nz")),
        ("metadata is null", Condition("metadata", "is null")),
        ("leader_epoch IS  Not NULL", Condition("leader_epoch", "is not null")),
        ("is_tombstone!=TRUE", Condition("is_tombstone", "!=", True)),
        ("commit_timestamp<2026-01-01", Condition("commit_timestamp", "<", datetime(2026, 1, 1, tzinfo=UTC))),
        (
            "commit_timestamp>=2026-01-01T02:30+02:00",
            Condition("commit_timestamp", ">=", datetime(2026, 1, 1, 0, 30, tzinfo=UTC)),
        ),
    ],
)
def test_conditions(text: str, expected: Condition) -> None:
    assert condition(COMMITS, text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "offset",
            "'offset' is not a valid condition: write COLUMN OPERATOR VALUE, as in offset>=100, with one of = != < <= "
            "> >= and ~ (contains), or COLUMN is null, or COLUMN is not null",
        ),
        ("ofset>1", "offset_commits has no column 'ofset'; did you mean offset?"),
        ("offset>x", "offset is an int64, and 'x' is not a whole number"),
        ("group_id=\udcff", r"'\udcff' is not UTF-8, so no group_id can be equal to it"),
        ("offset>1_0", "offset is an int64, and '1_0' is not a whole number"),
        ("partition=2147483648", "partition is an int32, and 2147483648 is outside its range"),
        ("is_tombstone=1", "is_tombstone is a bool: '1' is neither true nor false"),
        ("is_tombstone<true", "is_tombstone is a bool: compare it with = or !="),
        ("offset~1", "offset is an int64: ~ searches only strings"),
        (
            "commit_timestamp>20260101",
            "commit_timestamp is a timestamp, but '20260101' is not one: write 2026-01-31, 2026-01-31T12:00 (UTC) or "
            "2026-01-31T12:00+02:00",
        ),
    ],
)
def test_no_conditions(text: str, message: str) -> None:
    with pytest.raises((QueryError, UnknownColumn)) as raised:
        condition(COMMITS, text)
    assert str(raised.value) == message


def test_a_list_is_null_or_not() -> None:
    assert condition(TRANSACTIONS, "partitions is null").operator == "is null"
    with pytest.raises(QueryError) as raised:
        condition(TRANSACTIONS, "partitions=t")
    assert str(raised.value) == "partitions is a list: it can be compared with null only (partitions is null)"
    with pytest.raises(QueryError) as raised:
        query_of(TRANSACTIONS, sort=["partitions"])
    assert str(raised.value) == "rows cannot be sorted by partitions, because it is a list"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
        ("2026-01-31T12:00", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00.123000+00:00"),
        ("2039-03-08T19:46:13.411Z", "2039-03-08T19:46:13.411000+00:00"),
        ("2026-01-31 12:00+02:00", "2026-01-31T10:00:00+00:00"),
        ("1769860800000", "2026-01-31T12:00:00+00:00"),
        ("90s", "2026-01-31T11:58:30+00:00"),
        ("30m ago", "2026-01-31T11:30:00+00:00"),
        ("2h", "2026-01-31T10:00:00+00:00"),
        ("7d ago", "2026-01-24T12:00:00+00:00"),
        ("1w", "2026-01-24T12:00:00+00:00"),
    ],
)
def test_moments(text: str, moment: str) -> None:
    assert datetime.fromtimestamp(milliseconds(text, NOW) / 1000, UTC).isoformat() == moment


MOMENTS = (
    "2026-01-31, 2026-01-31T12:00 (UTC), 2026-01-31T12:00+02:00, 1769860800000 (milliseconds since 1970), now, or 90s, "
    "30m, 2h, 7d or 1w for a time before now"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yesterday", f"'yesterday' is not a moment: write {MOMENTS}"),
        ("", f"'' is not a moment: write {MOMENTS}"),
        ("0001-01-01T00:00+14:00", f"'0001-01-01T00:00+14:00' is not a moment: write {MOMENTS}"),
        ("20260131", f"20260131 is before 1974 if taken as milliseconds since 1970: write {MOMENTS}"),
        ("9" * 5000, f"{'9' * 5000} is after the year 9999 if taken as milliseconds since 1970: write {MOMENTS}"),
    ],
)
def test_no_moments(text: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        milliseconds(text, NOW)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"columns": ["offset", "grup_id"]}, "current_offsets has no column 'grup_id'; did you mean group_id?"),
        (
            {"columns": ["grup_id", "offset"], "where": ["ofset>1"], "sort": ["-partition", "-xyzzy"]},
            "current_offsets has no columns 'grup_id' (did you mean group_id?), 'ofset' (did you mean offset?), "
            f"'xyzzy'; there are {', '.join(OFFSETS.names)}",
        ),
        ({"columns": ["offset", "offset"]}, "the column offset is given twice"),
        ({"columns": []}, "no columns are given: give at least one"),
        ({"sort": ["-commit_time"]}, "current_offsets has no column 'commit_time'; did you mean commit_timestamp?"),
        ({"limit": -1}, "-1 is not a valid limit: it must be 0 or more"),
    ],
)
def test_what_cannot_be_asked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((QueryError, UnknownColumn)) as raised:
        query_of(OFFSETS, **settings)
    assert str(raised.value) == message


def test_rows_without_a_topic() -> None:
    with pytest.raises(QueryError) as raised:
        query_of(TABLES["groups"], topics=["t"])
    assert str(raised.value) == "rows of groups do not belong to a topic"


def test_a_name_that_is_like_none() -> None:
    assert near("zzz", ["a", "b"]) == "there are a, b"
    assert near("GROUPS", TABLES) == "did you mean groups?"


# -- rows --------------------------------------------------------------------------------------------------------------


def rows(*values: tuple[str | None, str | None, int | None]) -> list[pa.RecordBatch]:
    """Batches of one row each: group, topic and offset, all else null."""
    return [
        pa.RecordBatch.from_pylist([{"group_id": group, "topic": topic, "offset": offset}], schema=OFFSETS.schema)
        for group, topic, offset in values
    ]


@pytest.mark.parametrize("by", ["offset", "-offset", "-group_id", "commit_timestamp"])
@pytest.mark.parametrize("limit", [0, 1, 20, 4999])
def test_the_first_rows_are_those_of_a_whole_sort(by: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_SPARE", 10)
    chance = Random(7)
    values = [
        {
            "group_id": f"g{chance.randrange(40)}",
            "topic": "t",
            "partition": at,
            "offset": chance.choice([None, chance.randrange(50)]),
        }
        for at in range(5000)
    ]
    table = pa.Table.from_pylist(values, schema=OFFSETS.schema)
    query = query_of(OFFSETS, sort=[by], limit=limit)
    order = [(key.column, "descending" if key.descending else "ascending") for key in query.order]
    found = pa.Table.from_batches([*Selection(OFFSETS, table.to_batches(max_chunksize=700), query)], table.schema)
    assert found.equals(table.sort_by(order).slice(0, limit))
    for soon in (9, 4999, 5000, 6000):
        every = Selection(OFFSETS, table.to_batches(max_chunksize=700), query_of(OFFSETS, sort=[by]), soon=soon)
        assert pa.Table.from_batches([*every], table.schema).equals(table.sort_by(order))


SOME = [("b", "orders", 3), ("a", "orders.dlq", None), (None, None, 7), ("a", "Payments", 3), ("ab", "orders", -1)]


def selected(most_held: int | None = None, **settings: Any) -> tuple[list[tuple[Any, ...]], Selection]:
    query = query_of(OFFSETS, columns=["group_id", "topic", "offset"], **settings)
    selection = Selection(OFFSETS, rows(*SOME), query, most_held)
    return [tuple(row.values()) for batch in selection for row in batch.to_pylist()], selection


@pytest.mark.parametrize(
    ("where", "places"),
    [
        (["offset=3"], [3, 0]),
        (["offset!=3"], [4, 2]),
        (["offset>=3", "group_id=a"], [3]),
        (["group_id>a"], [4, 0]),
        (["group_id~a"], [3, 1, 4]),
        (["offset is null"], [1]),
        (["group_id is not null"], [3, 1, 4, 0]),
        (["offset>3", "offset<3"], []),
    ],
)
def test_rows_for_which_conditions_hold(where: list[str], places: list[int]) -> None:
    found, selection = selected(where=where)
    assert found == [SOME[at] for at in places]
    assert selection.matching == len(places)


@pytest.mark.parametrize(
    ("topics", "places"),
    [(["orders*"], [1, 4, 0]), (["payments"], []), (["[Pp]ay*", "*.dlq"], [3, 1]), (["*"], [3, 1, 4, 0])],
)
def test_rows_about_topics(topics: list[str], places: list[int]) -> None:
    assert selected(topics=topics)[0] == [SOME[at] for at in places]


@pytest.mark.parametrize(
    ("sort", "places"),
    [([], [3, 1, 4, 0, 2]), (["-offset"], [2, 3, 0, 4, 1]), (["offset", "-group_id"], [4, 0, 3, 2, 1])],
)
def test_order(sort: list[str], places: list[int]) -> None:
    expected = [SOME[at] for at in places]
    assert selected(sort=sort)[0] == expected
    for limit in range(len(SOME) + 2):
        found, selection = selected(sort=sort, limit=limit)
        assert (found, selection.matching) == (expected[:limit], len(SOME))


def test_a_limit_holds_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_records_tables.selection._SPARE", 0)
    assert selected(sort=["-offset"], limit=1)[0] == [SOME[2]]


def test_more_text_than_can_be_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow(*_: object) -> None:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    table = SimpleNamespace(from_batches=lambda *_: SimpleNamespace(sort_by=overflow))
    monkeypatch.setattr("kafka_records_tables.selection.pa.Table", table)
    monkeypatch.setattr("kafka_records_tables.selection.is_sorted", lambda *_: False)
    with pytest.raises(QueryError) as raised:
        selected()
    assert str(raised.value) == (
        "one column of the rows has more than 2 GiB of text, which cannot be sorted: select fewer rows or "
        "columns, or write json, csv or parquet without sorting"
    )


def test_more_rows_than_are_held_come_as_they_are() -> None:
    found, selection = selected(most_held=1)
    assert (found, selection.is_sorted) == (SOME, False)
    found, selection = selected(most_held=1 << 20)
    assert (found, selection.is_sorted) == ([SOME[at] for at in (3, 1, 4, 0, 2)], True)


def test_transactions_about_topics() -> None:
    listed: list[list[str] | None] = [["a", "b"], None, [], ["c"], ["a"]]
    batch = pa.RecordBatch.from_pylist(
        [
            {
                "transactional_id": str(at),
                "partitions": None if topics is None else [{"topic": each} for each in topics],
            }
            for at, topics in enumerate(listed)
        ],
        schema=TRANSACTIONS.schema,
    )
    for pattern, expected in (("a", ["0", "4"]), ("c", ["3"]), ("?", ["0", "3", "4"]), ("x", [])):
        query = query_of(TRANSACTIONS, columns=["transactional_id"], topics=[pattern])
        for given in ([batch], [batch.slice(0, 2), batch.slice(2)]):
            found = [value for part in Selection(TRANSACTIONS, given, query) for value in part.column(0).to_pylist()]
            assert found == expected


def test_columns_have_the_words_that_are_declared_and_no_others(topics_dir: Path, data_dir: Path) -> None:
    with_words = {name: table for name, table in TABLES.items() if any(column.words for column in table.columns)}
    of_metadata = [name for name, table in with_words.items() if table.topic == "__cluster_metadata"]
    others = [name for name in with_words if name not in of_metadata]
    found = {
        **read_tables(of_metadata, data_dir / "metadata/kafka-4.3"),
        **read_tables(others, topics_dir / "kafka-4.3" / "segments"),
    }
    assert found.keys() == with_words.keys()
    for name, table in with_words.items():
        for column in table.columns:
            if column.words:
                texts = found[name].table[column.name].unique().drop_null().to_pylist()
                assert [text for text in texts if not has_words(text, column.words)] == [], (name, column.name)
