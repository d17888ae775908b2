"""Checks that the records of another generated package are those for which a table was written.

Tables read fields by their Python names, with the Arrow types that they have in `kafka_records`. A package from newer
specs has more fields, versions and records, and tables can be read with it. A package in which a field is missing or
has another name or type is rejected before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from kafka_records_runtime.schema import FieldSchema, MessageSchema, RecordSchema, StructSchema
from kafka_records_tables.tables import Table, tables_read

KAFKA: Final = "kafka_records"
"""The package of Kafka's own records, for which tables are written."""

_OURS: Final = "kafka_records_tables."


def misfits(table: Table, package: str) -> list[str]:
    """The reasons why `table` cannot be read with `package`, as sentences without a full stop; empty if there are
    none."""
    if package == KAFKA:
        return []
    found = (line for read in tables_read(table) if read.records for line in _misfits(read, package))
    return list(dict.fromkeys(found))


def _misfits(table: Table, package: str) -> Iterator[str]:
    there = _records(package, table.folder)
    missing = [name for name in table.records if name not in there]
    if missing:
        yield f"{table.name} needs the records of a folder {table.folder}: there is no {', '.join(missing)}"
    if not table.module.startswith(_OURS):
        return  # a declaration of the caller's own, whose field names are unknown here
    ours = _records(KAFKA, table.folder)
    for name in ours if table.reader.every_type else table.records:
        if name in there:
            pairs = (ours[name].key_or_none, there[name].key_or_none), (ours[name].value, there[name].value)
            for mine, theirs in pairs:
                if mine is None or theirs is None:
                    continue
                for what in _of_struct((mine, mine.root), (theirs, theirs.root), ""):
                    yield f"{table.name} reads {mine.name} as {KAFKA} defines it, and there {what}"


def _records(package: str, folder: str) -> Mapping[str, RecordSchema]:
    """The records in a folder of the package by name; empty if there is no such folder."""
    try:
        records: Mapping[int, RecordSchema] = import_module(f"{package}.schemas.{folder}").RECORDS
    except (ModuleNotFoundError, AttributeError):
        return {}
    return {record.name: record for record in records.values()}


def _of_struct(
    ours: tuple[MessageSchema, StructSchema], theirs: tuple[MessageSchema, StructSchema], path: str
) -> Iterator[str]:
    fields = {field.name: field for field in theirs[1].fields}
    for mine in ours[1].fields:
        place = f"{path}{mine.name}"
        other = fields.get(mine.name)
        if other is None:
            new = [name for name in fields if name not in {field.name for field in ours[1].fields}]
            instead = (
                f", but {', '.join(new)}; bytes contain no names, so you can rename it in the specs" if new else ""
            )
            yield f"it has no field {place}{instead}"
        elif _kind(mine) != _kind(other):
            yield f"the field {place} is {_spelled(other)}, not {_spelled(mine)}"
        elif mine.is_struct:
            inner = ours[0], ours[0].struct(mine.base)
            yield from _of_struct(inner, (theirs[0], theirs[0].struct(other.base)), f"{place}.")
    names = [field.name for field in ours[1].fields]
    order = [name for name in fields if name in names]
    if len(order) == len(names) and order != names:
        yield f"the fields {path}{{{', '.join(names)}}} are in another order"


def _kind(field: FieldSchema) -> tuple[bool, str]:
    """The parts of a field that determine its Arrow type, except for the fields of a struct. Its name does not
    count."""
    return field.is_array, "struct" if field.is_struct else field.base


def _spelled(field: FieldSchema) -> str:
    is_array, base = _kind(field)
    return f"[]{base}" if is_array else base
