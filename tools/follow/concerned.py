"""The tables that a release affects, as far as their declarations show: these name records and columns, but no
fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.changes import Change
from kafka_records_codegen.model.messages import Message
from kafka_records_codegen.model.naming import python_name
from kafka_records_tables.tables import TABLES, Table, tables_read
from tools.follow.refusals import RECORDS


def tables_concerned(changes: Iterable[Change], messages: Mapping[str, Message]) -> Iterator[str]:
    """A section, or nothing: for each changed record, the tables that read it; for each new record, the tables of its
    topic that have columns with the names of its fields. `messages` are those of the release."""
    records: dict[str, list[Change]] = {}
    for change in changes:
        records.setdefault(change.message.removesuffix("Key").removesuffix("Value"), []).append(change)
    parts = [part for name in sorted(records) for part in _record(name, records[name], messages)]
    if not parts:
        return
    yield from ("", "## Tables", "")
    yield "These tables read each changed record. Their columns with the name of one of its fields are in parentheses."
    yield from parts


def _record(name: str, changes: Sequence[Change], messages: Mapping[str, Message]) -> Iterator[str]:
    sides = [messages[side] for side in (f"{name}Key", f"{name}Value", name) if side in messages]
    fields = {field.python_name for side in sides for struct in side.structs for field in struct.fields}
    reading = tables_of(name)
    if reading:
        listed = dict.fromkeys(_field(change) for change in changes if change.field and change.rank is not Rank.WORDS)
        told = ", ".join(listed) or "versions"
    elif any(side.type.startswith("coordinator-") for side in sides):
        folder = sides[0].folder
        topic = f"__{RECORDS.get(folder, folder)}"
        told = "new, and in no table"
        reading = [table for table in TABLES.values() if any(each.topic == topic for each in tables_read(table))]
        reading = [table for table in reading if _shared(table, fields)]
    else:
        return
    yield from ("", f"### {name}: {told}", "")
    if not reading:
        yield "No table of its topic has a column with the name of one of its fields."
        return
    by_columns: dict[tuple[str, ...], list[Table]] = {}
    for table in sorted(reading, key=lambda each: -len(_shared(each, fields))):
        by_columns.setdefault(tuple(_shared(table, fields)), []).append(table)
    for columns, tables in by_columns.items():
        named = ", ".join(f"[{table.name}](../tables.md#{table.name})" for table in tables)
        yield f"- {named} ({', '.join(f'`{column}`' for column in columns) or 'none'})"


def tables_of(record: str) -> list[Table]:
    """The tables that read a record themselves, or through their inputs."""
    return [table for table in TABLES.values() if any(record in read.records for read in tables_read(table))]


def _shared(table: Table, fields: Set[str]) -> list[str]:
    return [column.name for column in table.columns if column.name in fields]


def _field(change: Change) -> str:
    return f"`{'.'.join(map(python_name, change.field.split('.')))}`"
