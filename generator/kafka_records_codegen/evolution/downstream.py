"""Describes how a change of a field affects decoded messages: attributes, columns, Avro schemas and files.

All versions of a message share a class, a column and an Avro schema, so the bytes of a single version do not matter
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kafka_records_codegen.evolution.changes import Downstream, DownstreamEffect
from kafka_records_codegen.model.messages import Field, Message
from kafka_records_codegen.products.avro import AVRO_TYPES
from kafka_records_codegen.products.spark import SQL_TYPES
from kafka_records_codegen.python.names import annotation
from kafka_records_runtime.text.spark_names import SPARK_TYPES

_SAME: Final = DownstreamEffect("same", "as before")
_YES: Final = DownstreamEffect("yes", "yes")

_WIDER: Final[Mapping[str, tuple[str, ...]]] = {
    "tinyint": ("smallint", "int", "bigint", "double"),
    "smallint": ("int", "bigint", "double"),
    "int": ("bigint", "double"),
}
"""For each SQL type, the types that can hold all of its values."""

_INT32: Final = ("tinyint", "smallint", "int")
"""SQL types that Parquet stores in its type INT32."""

_PARQUET: Final[Mapping[str, str]] = {
    "widened": "files with {older} are read as {newer}",
    "widened-by-spark-4": "Spark 4 and pyarrow read files with {older} as {newer}, but Spark 3.5 rejects them",
    "truncated": "Spark reads files with {older} as {newer} and cuts off what does not fit (70000 is 4464); pyarrow "
    "refuses such values",
    "as-text": "Spark and pyarrow read files with {older} as {newer}; Spark replaces bytes that are not UTF-8",
    "unreadable": "Spark refuses files with {older}: read them by the older schema",
}
"""How a change affects files, by the kind of change."""

_PROMOTED: Final = frozenset(
    {("int", "long"), ("int", "double"), ("long", "double"), ("string", "bytes"), ("bytes", "string")}
)
"""For each Avro type that was written, the types as which a reader may read it (fastavro's `match_types`)."""


@dataclass(frozen=True)
class Attribute:
    """A field with its message, and its type in each product. `name` is the path in Python names."""

    message: Message
    field: Field
    name: str

    @property
    def python(self) -> str:
        return annotation(self.message, self.field)

    @property
    def sql(self) -> str:
        one = "struct" if self.field.is_struct else SQL_TYPES[SPARK_TYPES[self.field.base]]
        return f"array<{one}>" if self.field.is_array else one

    @property
    def avro(self) -> str:
        """The Avro type of the field or, for an array, of an element; for a struct, the name of its Avro record."""
        if self.field.is_struct:
            return self.message.struct(self.field.base).python_name
        return AVRO_TYPES[self.field.base]


def of_message(python: str, records: str) -> Downstream:
    """The effect of a change to a whole message: `python` for its class, and `records` for all other products."""
    effect = DownstreamEffect("message", records)
    return Downstream(DownstreamEffect("message", python), effect, effect, effect, effect)


def nothing() -> Downstream:
    """The effect of a change that no product shows."""
    return Downstream(_SAME, _SAME, _YES, _YES, _SAME)


def of_versions(name: str) -> Downstream:
    """The effect if some versions lose or gain a field that other versions keep."""
    effect = DownstreamEffect("default", f"{name} stays, and has its default if the bytes lack it")
    return Downstream(effect, effect, _YES, _YES, _SAME)


def of_default(older: Attribute, newer: Attribute) -> Downstream:
    """The effect of a new default, which changes no product's type."""
    text = f"{newer.name} is {newer.field.default!r} if nothing sets it, and was {older.field.default!r}"
    value = DownstreamEffect("default", text)
    return Downstream(
        value,
        DownstreamEffect("default", f"{newer.name} has the new default if it is missing from the bytes"),
        _YES,
        _YES,
        _SAME,
    )


def of_ignorable(newer: Attribute) -> Downstream:
    """The effect of `ignorable`, which matters only when a version without the field is written."""
    verb = "drops" if newer.field.ignorable else "refuses"
    effect = DownstreamEffect("encode", f"encode {verb} {newer.name} in versions that lack it")
    return Downstream(effect, _SAME, _YES, _YES, _SAME)


def of_misread(older: Attribute | None, newer: Attribute | None, text: str) -> Downstream:
    """The effect of a moved field on existing bytes: `text`, unless the bytes now belong to another attribute."""
    products = of_field(older, newer)
    if products.python.kind != "same":
        return products
    effect = DownstreamEffect("misread", text)
    return replace(products, python=effect, spark=effect)


def of_reused(older: Attribute, newer: Attribute) -> Downstream:
    """The effect if the bytes of one field are now read as another field."""
    products = _added(newer)
    told = f"{older.name} is gone, and its bytes are read as {newer.name}, which is new"
    return replace(
        products,
        python=DownstreamEffect("misread", f"{told}: {newer.python}"),
        spark=DownstreamEffect("misread", f"{told}: {newer.sql}"),
        avro_forward=DownstreamEffect("default", f"yes, but {older.name} has its default"),
        parquet=DownstreamEffect("null", f"{older.name} stays unread, {newer.name} is null"),
    )


def of_field(older: Attribute | None, newer: Attribute | None, *, stays: bool = False) -> Downstream:
    """The effect on an attribute, which is None for a side without it.

    `stays` means that the newer side still has an attribute with the older name, filled by other versions.
    """
    if older is None and newer is None:
        return nothing()
    if older is None:
        assert newer is not None
        return _added(newer)
    if newer is None:
        return _gone(older)
    if older.name != newer.name:
        return _renamed(older, newer, stays)
    backward, forward = avro_reads(older, newer), avro_reads(newer, older)
    return Downstream(_python(older, newer), _spark(older, newer), backward, forward, _parquet(older, newer))


def _added(newer: Attribute) -> Downstream:
    return Downstream(
        DownstreamEffect("added", f"{newer.name}: {newer.python} is new"),
        DownstreamEffect("added", f"{newer.name} {newer.sql} is new"),
        DownstreamEffect("yes", "yes, it has its default in files without it"),
        DownstreamEffect("yes", "yes, it is skipped"),
        DownstreamEffect("null", "files lack the column: null"),
    )


def _gone(older: Attribute) -> Downstream:
    return Downstream(
        DownstreamEffect("gone", f"{older.name} is gone"),
        DownstreamEffect("gone", f"{older.name} {older.sql} is gone"),
        DownstreamEffect("yes", "yes, it is skipped"),
        DownstreamEffect("yes", "yes, it has its default in files without it"),
        DownstreamEffect("unread", "files keep the column, but it is not read"),
    )


def _renamed(older: Attribute, newer: Attribute, stays: bool) -> Downstream:
    if stays:
        value = DownstreamEffect(
            "elsewhere", f"{newer.name} has the values of {older.name}, which stays for other versions"
        )
        default = DownstreamEffect("default", "yes, but each has its default if the other is written")
        return Downstream(
            value, value, default, default, DownstreamEffect("null", f"{newer.name} is null in older files")
        )
    return Downstream(
        DownstreamEffect("renamed", f"{older.name} is called {newer.name}"),
        DownstreamEffect("renamed", f"{older.name} is gone, and {newer.name} {newer.sql} is new"),
        DownstreamEffect("default", f"yes, but {newer.name} has its default: fields are matched by name"),
        DownstreamEffect("default", f"yes, but {older.name} has its default: fields are matched by name"),
        DownstreamEffect("null", f"{older.name} stays unread, {newer.name} is null"),
    )


def _python(older: Attribute, newer: Attribute) -> DownstreamEffect:
    if older.python != newer.python:
        nullable = f"{older.python} | None" == newer.python
        return DownstreamEffect(
            "nullable" if nullable else "retyped", f"{newer.name}: {older.python} is {newer.python}"
        )
    if older.field.json_name != newer.field.json_name:
        return DownstreamEffect(
            "json-key", f"JSON calls {newer.name} {newer.field.json_name}, and called it {older.field.json_name}"
        )
    return _SAME


def _spark(older: Attribute, newer: Attribute) -> DownstreamEffect:
    if older.sql != newer.sql:
        kind = "widened" if newer.sql in _WIDER.get(older.sql, ()) else "retyped"
        return DownstreamEffect(kind, f"{newer.name} {older.sql} is {newer.sql}")
    if older.field.can_be_null != newer.field.can_be_null:
        kind, text = ("nullable", "may be null") if newer.field.can_be_null else ("not-null", "is never null")
        return DownstreamEffect(kind, f"{newer.name} {text} now")
    return _SAME


def _parquet(older: Attribute, newer: Attribute) -> DownstreamEffect:
    if older.sql == newer.sql:
        return _SAME
    kind = parquet_kind(older.sql, newer.sql)
    return DownstreamEffect(kind, _PARQUET[kind].format(older=older.sql, newer=newer.sql))


def parquet_kind(written: str, read: str) -> str:
    """How Spark reads a column of the SQL type `written` as the type `read`."""
    array = "array<"
    if written.startswith(array) != read.startswith(array):
        return "unreadable"
    one, other = (each.removeprefix(array).removesuffix(">") for each in (written, read))
    if one in _INT32 and other in _INT32:
        return "widened" if other in _WIDER.get(one, ()) else "truncated"
    if one in _INT32 and other in ("bigint", "double"):
        return "widened-by-spark-4"
    return "as-text" if {one, other} == {"string", "binary"} else "unreadable"


def avro_reads(written: Attribute, read: Attribute) -> DownstreamEffect:
    """Whether a reader with the schema of `read` accepts a value written with the schema of `written`."""
    if written.field.is_array != read.field.is_array or not _matches(written, read):
        return DownstreamEffect("no", f"no: {_avro_text(written)} is not {_avro_text(read)}")
    if written.avro == "bytes" and read.avro == "string":
        return DownstreamEffect("partly", "only bytes that are UTF-8")
    if written.field.can_be_null and not read.field.can_be_null:
        return DownstreamEffect("partly", "unless it is null")
    return _YES


def _matches(written: Attribute, read: Attribute) -> bool:
    if written.field.is_struct != read.field.is_struct:
        return False
    return written.avro == read.avro or (written.avro, read.avro) in _PROMOTED


def _avro_text(attribute: Attribute) -> str:
    return f"array of {attribute.avro}" if attribute.field.is_array else attribute.avro
