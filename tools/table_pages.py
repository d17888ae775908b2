"""Write the page about tables, docs/tables.md, from their declarations; with --check, compare it with the file.

tools/table_pages.py            # write the page
tools/table_pages.py --check    # report whether the page is up to date
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from kafka_records_tables.tables import TABLES, Table, inputs_of
from kafka_records_tables.tables.declaration import REPLAYED, Column, Option

PAGE = Path(__file__).parent.parent / "docs" / "tables.md"

_HEAD = """\
# Tables

<!-- Written by tools/table_pages.py from the declarations in kafka_records_tables.tables: make generate. -->

A table computes rows from the records of one log partition, read in order. `log_ends` reads no records, and views join
rows of other tables. The command, `read_table` and the Spark functions return the same rows and findings. Tables *with
transactions*, and views of them, consider how transactions ended, and reject a source that does not show it. A record
that cannot be decoded has no rows unless its table says otherwise; a finding names it.

A moment has two columns, of which the lists name the first: `…_timestamp` (timestamp, null outside the years 1 to 9999)
and `…_timestamp_ms` (int64, milliseconds since 1970). Other columns without a type are strings.

A column is null if the source does not show its value, or if the row has none. The lists of columns give only other
reasons; `kafka-records table --describe NAME` gives all of them, the records that the table reads, and the columns by
which rows are sorted.

"""

_SHARED = """
## Columns that several tables have

"""

_AS_BEFORE = "The log is replayed [as for {first}](#{first}).\n"

_OBVIOUS = (
    *("for a tombstone", "for a group", "for other records", "for all other records", "for other events"),
    *("for records that are not about a member", "in the row about the group itself", "in all other rows"),
    *("in rows of kind `offset`", "without `at`", "without a transaction", "without a transactional id"),
    *("for a topic that is being deleted", "for users' topics", "except in __transaction_state"),
    *("in classic groups and for tasks", "for groups without a record of their own", "without a window, or if unknown"),
    *("without an entry in __transaction_state", "in state Empty"),
    "for logs that are not compacted, and if the source has no files",
)
"""Rows in which a column obviously has no value."""

_USUAL_NULLS = frozenset(f"null {rows}" for rows in _OBVIOUS) | frozenset(
    f"null if {reason}"
    for reason in (
        *("unknown", "that is unknown", "neither is known", "none is known", "not set"),
        *("there is none", "there are none", "there is neither", "it has none", "none does"),
        *("there is none or it is unknown", "there is none, or if unknown", "there is none, or if no record has it"),
        *("the source has none", "the source has no times", "the record has none", "no commit has one"),
        *(
            "no record has it",
            "no record has one",
            "no record holds them",
            "no record lists them",
            "no record shows it",
        ),
        *("the log has none", "the log shows none", "the log does not have it", "it is not in the log"),
        *("the log does not go back so far", "no broker reported it"),
        *("the source has no files", "unread_timestamp is null", "cleanable_offset is null", "topic is null"),
        *("unread is null", "still valid", "it still is", "it exists", "it did not", "it does not hang"),
        *("nothing must end", "it deletes", "there was no group", "no record is left", "none is committed"),
        *("none has begun", "it is unknown for a partition whose lag is known", "it is about the group"),
        *("the group is gone", "the group of an offset is gone", "the commit has none, and for a group"),
        *("no log in the source shows it open", "the source has no log of it", "its name is unknown, and for tasks"),
        *(
            "there is none, or if its name is unknown",
            "it was not yet decided, or is unknown",
            "none has this producer id",
            "there is none, and outside streams groups",
        ),
        *("it never was, or if the source has no files", "lag is null, or if they were not counted", "all is well"),
        *("lag or last_stable_offset is null", "unknown, as for most deleted topics"),
        *("the key does not name it, and in __transaction_state", "the record that holds it cannot be decoded"),
    )
)
"""What the descriptions of columns say about nulls that the head of the page describes."""

_DETAILS = re.compile(r": |, (?:and|what|including)\b")
"""Where the details begin in what a table is about."""

_FEWEST = 4
"""The number of words from which what is left says enough."""

_SEVERAL = 2
"""The number of tables with a column from which it is described once."""

_VALUES = {
    "moment": "a moment",
    "duration": "a duration",
    "ahead": "a duration",
    "partitions": "a number, or `TOPIC=N,TOPIC=N`",
    "flag": "`true`; the command takes no value",
    "release": "a release of Kafka: `3.9`, `4.1.2`",
    "checkpoints": "one or several: in Python a list or a mapping of names",
}


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the page would change")
    options = parser.parse_args()
    text = page(TABLES.values())
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print("docs/tables.md is not what the declarations say: run make generate", file=sys.stderr)
        return 1
    return 0


def page(tables: Collection[Table]) -> str:
    """The page about some tables."""
    first = next((table.name for table in tables if table.rules.startswith(REPLAYED)), "")
    shared = _shared(tables)
    described: dict[object, str] = dict.fromkeys(map(_as_described, shared), "")
    parts = [""]
    for table in tables:
        parts += _table(table, described, first)
        given: tuple[Column | Option, ...] = (*table.columns, *table.options)
        for each in given:
            described.setdefault(_as_described(each), table.name)
    common = _SHARED + "\n".join(_columns(shared)) + "\n"
    return _HEAD + "".join(_overview(tables)) + (common if shared else "") + "\n".join(parts)


def _shared(tables: Iterable[Table]) -> list[Column]:
    """The columns that several tables have with one description: of each name the most frequent one."""
    columns = {_as_described(column): column for table in tables for column in table.columns}
    times = Counter(_as_described(column) for table in tables for column in table.columns)
    first: dict[str, Column] = {}
    for same, count in times.most_common():
        if count >= _SEVERAL:
            first.setdefault(columns[same].name, columns[same])
    return [column for column in columns.values() if first.get(column.name) == column]


def _as_described(each: Column | Option) -> object:
    """The same for columns that are described in the same words."""
    return each if isinstance(each, Option) else (each.name, each.type, own_words(each))


def _overview(tables: Collection[Table]) -> Iterator[str]:
    """A list of the tables for each topic."""
    by_topic: dict[str, list[Table]] = {}
    for table in tables:
        topic = f"`{table.topic}`" if table.topic else "Several topics" if table.inputs else "Every topic"
        by_topic.setdefault(topic, []).append(table)
    for number, (topic, of_topic) in enumerate(by_topic.items()):
        yield f"{chr(10) if number else ''}{topic}:\n\n"
        yield from (f"{_item(f'[{table.name}](#{table.name}): {_brief(table.about)}')}\n" for table in of_topic)


def _brief(about: str) -> str:
    """What a table has, without the details that its section gives."""
    first = _DETAILS.split(about)[0]
    return first if len(first.split()) >= _FEWEST else about


def _table(table: Table, described: Mapping[object, str], first: str) -> Iterator[str]:
    """The section about a table. `described` has the columns and options of tables before it, each with the first that
    has it, and the columns that several tables have, each with an empty text. `first` is the table that says how the
    metadata log is replayed."""
    yield f"## {table.name}\n"
    is_first = table.name == first
    yield table.rules if is_first else table.rules.replace(REPLAYED, _AS_BEFORE.format(first=first), 1)
    source = []
    if table.join_keys:
        source.append(f"A view of {', '.join(f'`{name}`' for name in table.inputs)}.")
    elif table.inputs:
        topics = dict.fromkeys(f"`{each.topic}`" if each.topic else "log ends" for each in inputs_of(table))
        source.append(f"A view of {', '.join(topics)}.")
    if table.needs_transactions:
        source.append("With transactions.")
    if source:
        yield textwrap.fill(" ".join(source), 120, break_long_words=False, break_on_hyphens=False) + "\n"
    if table.options:
        yield "Options:\n"
        yield from (f"- {each}" for each in _known(table.options, described))
        for option in (each for each in table.options if _as_described(each) not in described):
            value = ", ".join(f"`{word}`" for word in option.words) or _VALUES[option.kind]
            default = f"; default: {option.default}" if option.default else ""
            yield _item(f"`{option.name}` ({value}): {option.about}{default}")
        yield ""
    known = "; ".join(_known(table.columns, described))
    if known:
        yield textwrap.fill(
            f"[Columns](#columns-that-several-tables-have): {known}.",
            120,
            break_long_words=False,
            break_on_hyphens=False,
        ) + "\n"
    own = [column for column in table.columns if _as_described(column) not in described]
    if own:
        yield from _columns(own)
        yield ""


def _known(given: Iterable[Column | Option], described: Mapping[object, str]) -> Iterator[str]:
    """The columns or options that are described before in the same words: those that several tables have, and those of
    earlier tables, by table."""
    known = defaultdict(list)
    given = [*given]
    moments = {each.name for each in given if isinstance(each, Column) and each.type == "timestamp"}
    for each in given:
        if (same := _as_described(each)) in described and each.name.removesuffix("_ms") not in moments - {each.name}:
            known[described[same]].append(f"`{each.name}`")
    for table, names in known.items():
        yield ", ".join(names) + (f" as in [{table}](#{table})" if table else "")


def _columns(columns: Collection[Column]) -> Iterator[str]:
    """The list of columns; the two columns of a moment are one element."""
    by_name = {column.name: column for column in columns}
    for column in columns:
        if column.type == "timestamp":
            yield _item(f"`{column.name}`: {own_words(column)}")
        elif by_name.get(column.name.removesuffix("_ms"), column).type != "timestamp":
            shown = "" if column.type == "string" else f" {column.type}"
            yield _item(f"`{column.name}`{shown}: {own_words(column)}")


def own_words(column: Column) -> str:
    """The description of a column without what the head of the page says about all columns."""
    about = column.about.removesuffix("; null outside the years 1 to 9999")
    start, _, last = about.rpartition("; ")
    return start if last in _USUAL_NULLS else about


def _item(text: str) -> str:
    """An element of a list."""
    return textwrap.fill(f"- {text}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
