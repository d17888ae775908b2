"""Messages in the JSON form of Kafka's converters (`JsonConverterGenerator` of Kafka's generator).

Keys are Kafka's lowerCamel names in declared order, including tagged fields. Untagged fields of the version are always
present; tagged fields are present only if they differ from their default. A uuid is Kafka's 22-character text, and
bytes are padded base64.

This form contains two things that Kafka's form lacks: the bytes of `records` fields, as base64 (Kafka prints the empty
text), and unknown tagged fields, as the last member of their struct, `unknown_tagged_fields`, a list of objects with
`tag` (a number) and `data` (base64). Kafka's converters read the former and ignore the latter. With `lossy`, the form
is exactly Kafka's. No field can be named `unknown_tagged_fields`, because field names contain no `_`.

The accepted input differs from Kafka's in four ways. A null is rejected in both directions if the version does not
allow it there. An int8 of 128 to 256 is rejected; Kafka wraps it. "Infinity", "-Infinity" and "NaN" are read as the
float64 values that Kafka prints that way; Kafka cannot read them. A key that is not a field is rejected; Kafka ignores
it.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

from kafka_records_runtime.errors import JsonError, NullNotAllowed, TagsNotSupported
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.schema.defaults import default_of, is_default, member_getter
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS, FieldLayout, check_version, struct_layouts
from kafka_records_runtime.text.close_names import close_name
from kafka_records_runtime.wire import primitives, scalars
from kafka_records_runtime.wire.failure import WriteFailure, join_path
from kafka_records_runtime.wire.writers import check_absent, check_keys, member

_FLOAT_TEXTS: Final = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def to_json(schema: MessageSchema, value: Any, version: int, *, lossy: bool = False) -> dict[str, Any]:
    """`value` (a dict tree or an object with attributes) in the form of Kafka's JSON converter for `version`.

    The bytes of `records` fields and unknown tagged fields are included unless `lossy` requests exactly Kafka's form.
    The result consists of dicts, lists, str, int, float, bool and None. Raises UnsupportedVersion, or an EncodeError
    with the path of a field that the version cannot contain.
    """
    check_version(schema, version)
    try:
        return _Printer(schema, version, lossy).struct(schema.root.name, value)
    except WriteFailure as failure:
        raise failure.located(schema.name, version) from None


def from_json(schema: MessageSchema, data: Any, version: int, classes: Mapping[str, Any] | None = None) -> Any:
    """The message in `data`, as returned by `walker.decode` (with the same mapping `classes`).

    Untagged fields of the version are required. Tagged fields, fields of other versions and, if the version has them,
    `unknown_tagged_fields` are optional. Raises UnsupportedVersion, or JsonError with the path in JSON names, also for
    a key that is not a field.
    """
    check_version(schema, version)
    try:
        return _Parser(schema, version, classes).struct(schema.root.name, data)
    except _JsonFailure as failure:
        path = join_path(reversed(failure.parts))
        raise JsonError(schema.name, version, path, failure.detail) from None


class _Printer:
    def __init__(self, schema: MessageSchema, version: int, lossy: bool) -> None:
        self._schema = schema
        self._layouts = struct_layouts(schema, version)
        self._is_flexible = schema.is_flexible(version)
        self._lossy = lossy

    def struct(self, name: str, value: Any) -> dict[str, Any]:
        if value is None:
            raise WriteFailure(NullNotAllowed)
        fields = self._layouts[name].fields
        check_keys(value, frozenset((UNKNOWN_TAGS, *(layout.field.name for layout in fields))))
        get = member_getter(value)
        printed: dict[str, Any] = {}
        layout = None
        try:
            for layout in fields:
                held = member(self._schema, layout.field, get, value)
                if not layout.present:
                    check_absent(self._schema, layout.field, held)
                elif not layout.tagged or not is_default(self._schema, layout.field, held):
                    printed[layout.field.json_name] = self._field(layout, held)
        except WriteFailure as failure:
            if layout is not None:
                failure.parts.append(layout.field.name)
            raise
        if not self._lossy and get(UNKNOWN_TAGS, ()):
            printed[UNKNOWN_TAGS] = self._unknown_tags(get(UNKNOWN_TAGS, ()))
        return printed

    def _unknown_tags(self, unknown: Any) -> list[dict[str, Any]]:
        try:
            if not self._is_flexible:
                raise WriteFailure(TagsNotSupported)
            return [_print_unknown_tag(each) for each in scalars.as_items(unknown)]
        except WriteFailure as failure:
            failure.parts.append(UNKNOWN_TAGS)
            raise

    def _field(self, layout: FieldLayout, value: Any) -> Any:
        if value is None:
            if not layout.nullable:
                raise WriteFailure(NullNotAllowed)
            return None
        if layout.field.is_array:
            return self._array(layout.field.base, layout.field.is_struct, value)
        return self._single(layout.field.base, layout.field.is_struct, value)

    def _array(self, base: str, is_struct: bool, value: Any) -> list[Any]:
        printed: list[Any] = []
        try:
            for item in scalars.as_items(value):
                if item is None:
                    raise WriteFailure(NullNotAllowed)
                printed.append(self._single(base, is_struct, item))
        except WriteFailure as failure:
            if isinstance(value, tuple | list):
                failure.parts.append(f"[{len(printed)}]")
            raise
        return printed

    def _single(self, base: str, is_struct: bool, value: Any) -> Any:
        return self.struct(base, value) if is_struct else _print_primitive(base, value, self._lossy)


def _print_unknown_tag(tagged: Any) -> dict[str, Any]:
    if not isinstance(tagged, tuple) or len(tagged) != 2:
        raise scalars.wrong_type("a pair of int and bytes", tagged)
    tag, data = tagged
    return {"tag": int(scalars.as_integer(tag, "int32")), "data": b64encode(scalars.as_raw(data)).decode("ascii")}


def _print_primitive(base: str, value: Any, lossy: bool) -> Any:
    if base in primitives.INTEGERS:
        return int(scalars.as_integer(value, base))
    match base:
        case "bool":
            return scalars.as_bool(value)
        case "float64":
            return _print_float(scalars.as_float(value))
        case "uuid":
            return str(Uuid(scalars.as_uuid(value)))
        case "string":
            return str(scalars.as_text(value))
        case _:
            raw = scalars.as_raw(value)
            return "" if lossy and base == "records" else b64encode(raw).decode("ascii")


def _print_float(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


class _JsonFailure(Exception):
    def __init__(self, detail: str) -> None:
        self.detail = detail
        self.parts: list[str] = []


class _Parser:
    def __init__(self, schema: MessageSchema, version: int, classes: Mapping[str, Any] | None) -> None:
        self._schema = schema
        self._layouts = struct_layouts(schema, version)
        self._has_unknown_tags = schema.is_flexible(version)
        self._classes = classes

    def struct(self, name: str, data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise _JsonFailure(f"is {_describe(data)}, expected an object")
        values: dict[str, Any] = {}
        self._check_keys(name, data)
        for layout in self._layouts[name].fields:
            field = layout.field
            try:
                if field.json_name in data:
                    values[field.name] = self._field(layout, data[field.json_name])
                elif layout.present and not layout.tagged:
                    raise _JsonFailure("is missing, but this version requires it")
                else:
                    values[field.name] = default_of(self._schema, field, self._classes)
            except _JsonFailure as failure:
                failure.parts.append(field.json_name)
                raise
        if self._schema.flexible is not None:
            values[UNKNOWN_TAGS] = _parse_unknown_tags(data.get(UNKNOWN_TAGS, ()))
        return values if self._classes is None else self._classes[name](**values)

    def _check_keys(self, name: str, data: Mapping[Any, Any]) -> None:
        names = [layout.field.json_name for layout in self._layouts[name].fields]
        if self._has_unknown_tags:
            names.append(UNKNOWN_TAGS)
        for key in data:
            if key not in names:
                close = close_name(str(key), names)
                hint = "" if close is None else f"; did you mean {close}?"
                raise _JsonFailure(f"has the key {key!r}, which is not a field{hint}")

    def _field(self, layout: FieldLayout, data: Any) -> Any:
        field = layout.field
        if data is None:
            if not (layout.nullable if layout.present else field.nullable):
                raise _JsonFailure("is null, which this version does not allow")
            return None
        if field.is_array:
            return self._array(field.base, field.is_struct, data)
        return self._single(field.base, field.is_struct, data)

    def _array(self, base: str, is_struct: bool, data: Any) -> tuple[Any, ...]:
        if not isinstance(data, list | tuple):
            raise _JsonFailure(f"is {_describe(data)}, expected an array")
        values: list[Any] = []
        try:
            for item in data:
                values.append(self._single(base, is_struct, item))
        except _JsonFailure as failure:
            failure.parts.append(f"[{len(values)}]")
            raise
        return tuple(values)

    def _single(self, base: str, is_struct: bool, data: Any) -> Any:
        return self.struct(base, data) if is_struct else _parse_primitive(base, data)


def _parse_primitive(base: str, data: Any) -> Any:
    if base in primitives.INTEGERS:
        return _parse_integer(base, data)
    match base:
        case "bool":
            if not isinstance(data, bool):
                raise _JsonFailure(f"is {_describe(data)}, expected true or false")
            return data
        case "float64":
            return _parse_float(data)
        case "uuid":
            try:
                return Uuid.from_string(_text_of(data))
            except ValueError:
                raise _JsonFailure("is not a uuid: write 22 characters of URL-safe base64") from None
        case "string":
            return _text_of(data)
        case _:
            try:
                return b64decode(_text_of(data), validate=True)
            except ValueError:
                raise _JsonFailure("is not base64") from None


def _parse_unknown_tags(data: Any) -> tuple[tuple[int, bytes], ...]:
    """Read unknown tags in any order, like a lenient reader. `encode` checks the order."""
    try:
        if not isinstance(data, list | tuple):
            raise _JsonFailure(f"is {_describe(data)}, expected an array")
        for each in data:
            if not isinstance(each, Mapping) or each.keys() != {"tag", "data"}:
                raise _JsonFailure("may contain only objects with tag and data")
        return tuple((_parse_integer("int32", each["tag"]), _parse_primitive("bytes", each["data"])) for each in data)
    except _JsonFailure as failure:
        failure.parts.append(UNKNOWN_TAGS)
        raise


def _parse_integer(base: str, data: Any) -> int:
    if not isinstance(data, int) or isinstance(data, bool):
        raise _JsonFailure(f"is {_describe(data)}, expected a whole number")
    _, lowest, highest = primitives.INTEGERS[base]
    if not lowest <= data <= highest:
        raise _JsonFailure(f"is outside the range {lowest} to {highest} of {base}")
    return data


def _parse_float(data: Any) -> float:
    if isinstance(data, str) and data in _FLOAT_TEXTS:
        return _FLOAT_TEXTS[data]
    if not isinstance(data, int | float) or isinstance(data, bool):
        raise _JsonFailure(f"is {_describe(data)}, expected a number")
    try:
        return float(data)
    except OverflowError:
        raise _JsonFailure("is too large for float64") from None


def _text_of(data: Any) -> str:
    if not isinstance(data, str):
        raise _JsonFailure(f"is {_describe(data)}, expected text")
    return data


def _describe(data: object) -> str:
    """The name of the type of a JSON value."""
    match data:
        case None:
            return "null"
        case bool():
            return "a bool"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "an array"
        case Mapping():
            return "an object"
        case _:
            return type(data).__name__
