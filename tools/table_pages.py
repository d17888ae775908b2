"""Write the page about tables, docs/tables.md, from their declarations; with --check, compare it with the file.

tools/table_pages.py            # write the page
tools/table_pages.py --check    # report whether the page is up to date
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.tables import TABLES, Table, inputs_of
from kafka_records_tables.tables.declaration import Column

PAGE = Path(__file__).parent.parent / "docs" / "tables.md"

_HEAD = """\
# Tables

<!-- Written by tools/table_pages.py from the declarations in kafka_records_tables.tables: make generate. -->

A table makes rows from the records of one log partition, read in order. `log_ends` reads no records, and views join
rows of other tables. The command, `read_table` and the Spark functions give the same rows and the same findings.

A moment has two columns: `…_timestamp`, null outside the years 1 to 9999, and `…_timestamp_ms`, in milliseconds since
1970. The group records are the {number} record types of `__consumer_offsets` that make groups:
{names}

| table | rows | topic |
|---|---|---|
"""

_OF_GROUPS = (*GROUP_RECORDS, *PARTS)

_HELPERS = {
    "latest": "the last record of each key decides",
    "fold": "the last records of each key are replayed in order",
    "facts": "every record is a row",
    "history": "all records are read in order",
    "view": "rows of other tables are joined",
    "ends": "the source is asked, no records are read",
}

_VALUES = {
    "moment": "a moment",
    "duration": "a duration",
    "ahead": "a duration",
    "partitions": "a number, or `TOPIC=N,TOPIC=N`",
    "flag": "`true`; the command takes no value",
    "release": "a release of Kafka: `3.9`, `4.1.2`",
    "checkpoints": "`DIR` or `NAME=DIR`; in Python also a list or a mapping of names; repeated for the command",
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
    head = _HEAD.format(number=len(_OF_GROUPS), names=textwrap.fill(f"{', '.join(_OF_GROUPS)}.", 120))
    return head + "".join(_overview(tables)) + "\n".join(["", *(line for table in tables for line in _table(table))])


def _overview(tables: Collection[Table]) -> Iterator[str]:
    for table in tables:
        topic = f"`{table.topic}`" if table.topic else "several" if table.inputs else "every topic"
        yield f"| [{table.name}](#{table.name}) | {table.about} | {topic} |\n"


def _table(table: Table) -> Iterator[str]:
    yield f"## {table.name}\n"
    yield table.rules
    how = f"How: {_HELPERS[table.helper]}."
    if table.join_keys:
        how = f"How: rows of {' and '.join(table.inputs)} are joined by {', '.join(table.join_keys)}."
    elif table.inputs:
        topics = dict.fromkeys(each.topic or "the ends of all logs" for each in inputs_of(table))
        how = f"How: rows of other tables are joined, from {', '.join(topics)}."
    how += f" Sorted by {', '.join(table.sort)}."
    if table.records and not table.needs_transactions:
        how += " Ignores how transactions ended."
    if table.records:
        how += f" Records: {', '.join(_records(table))}."
    yield textwrap.fill(how, 120) + "\n"
    place = f"{table.module.replace('.', '/')}.py"
    yield f"Code: [{place.rpartition('/')[2]}](../spark_udfs/{place}).\n"
    if table.options:
        yield "| option | value | effect |"
        yield "|---|---|---|"
        for option in table.options:
            value = ", ".join(f"`{word}`" for word in option.words) or _VALUES[option.kind]
            default = f"; default: {option.default}" if option.default else ""
            yield f"| `{option.name}` | {value} | {option.about}{default} |"
        yield ""
    yield "| column | type | meaning |"
    yield "|---|---|---|"
    yield from _columns(table.columns)
    yield ""


def _records(table: Table) -> Iterator[str]:
    """The names of the records of a table, with one name for all group records."""
    has_all = {*_OF_GROUPS} <= {*table.records}
    yield from (name for name in table.records if not has_all or name not in _OF_GROUPS)
    if has_all:
        yield "the group records"


def _columns(columns: Iterable[Column]) -> Iterator[str]:
    """The rows about columns; the two columns of a moment have one row."""
    by_name = {column.name: column for column in columns}
    for column in columns:
        in_ms = by_name.get(f"{column.name}_ms")
        if in_ms is not None and column.type == "timestamp":
            about = column.about.removesuffix("; null outside the years 1 to 9999")
            yield f"| `{column.name}`, `{in_ms.name}` | {column.type}, {in_ms.type} | {about} |"
        elif by_name.get(column.name.removesuffix("_ms"), column).type != "timestamp":
            yield f"| `{column.name}` | {column.type} | {column.about} |"


if __name__ == "__main__":
    sys.exit(main())
