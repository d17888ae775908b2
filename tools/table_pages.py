"""Write the page about tables, docs/tables.md, from their declarations; with --check, compare it with what is there.

tools/table_pages.py            # write it
tools/table_pages.py --check    # say whether it is what would be written
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path

from kafka_records_tables.tables import TABLES, Table, inputs_of

PAGE = Path(__file__).parent.parent / "docs" / "tables.md"

_HEAD = """\
# Tables

<!-- Written by tools/table_pages.py from the declarations in kafka_records_tables.tables: make generate. -->

A table is a function from the records of one log partition, in their order, to rows; `log_ends` alone reads none, and
views join rows of other tables. The command, `read_table` and the Spark functions run the same function. They give the
same rows and the same findings.

| table | rows | topic |
|---|---|---|
"""

_HELPERS = {
    "latest": "the last record of each key decides",
    "fold": "the last records of each key, replayed in order",
    "facts": "every record is a row",
    "history": "all records, one after the other",
    "view": "rows of other tables are joined",
    "ends": "the source is asked, no records are read",
}

_VALUES = {
    "moment": "a moment",
    "duration": "a duration",
    "ahead": "a duration",
    "partitions": "a number, or `TOPIC=N` with commas between",
    "flag": "`true`; the command takes no value",
    "release": "a release of Kafka: `3.9`, `4.1.2`",
    "checkpoints": "`DIR` or `NAME=DIR`; several in a list, a mapping of names in Python; repeated for the command",
}


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when the page would change")
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
    return _HEAD + "".join(_overview(tables)) + "\n".join(["", *(line for table in tables for line in _table(table))])


def _overview(tables: Collection[Table]) -> Iterator[str]:
    for table in tables:
        topic = f"`{table.topic}`" if table.topic else "those of its tables" if table.inputs else "every topic"
        yield f"| [{table.name}](#{table.name}) | {table.about} | {topic} |\n"


def _table(table: Table) -> Iterator[str]:
    yield f"## {table.name}\n"
    yield table.rules
    how = f"How: {_HELPERS[table.helper]}. Sorted by {', '.join(table.sort)}."
    if table.inputs:
        if table.join_keys:
            how += f" It joins {' and '.join(table.inputs)} by {', '.join(table.join_keys)}."
        else:
            topics = dict.fromkeys(each.topic or "the ends of all logs" for each in inputs_of(table))
            how += f" It is made from {', '.join(topics)}."
    if table.records and not table.needs_transactions:
        how += " It does not depend on how transactions ended."
    if table.records:
        how += f" It is made from the records {', '.join(table.records)}."
    yield textwrap.fill(how, 120) + "\n"
    place = f"{table.module.replace('.', '/')}.py"
    yield f"In code: [{place.rpartition('/')[2]}](../spark_udfs/{place}).\n"
    if table.options:
        yield "| option | value | what it asks |"
        yield "|---|---|---|"
        for option in table.options:
            value = ", ".join(f"`{word}`" for word in option.words) or _VALUES[option.kind]
            default = f"; default: {option.default}" if option.default else ""
            yield f"| `{option.name}` | {value} | {option.about}{default} |"
        yield ""
    yield "| column | type | meaning |"
    yield "|---|---|---|"
    for column in table.columns:
        yield f"| `{column.name}` | {column.type} | {column.about} |"
    yield ""


if __name__ == "__main__":
    sys.exit(main())
