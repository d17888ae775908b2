"""Suggests valid names for names that do not exist in the spec language."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from kafka_records_runtime.schema import PRIMITIVES
from kafka_records_runtime.text.close_names import close_name

_ELSEWHERE: Final = {
    **{"byte": "int8", "short": "int16", "int": "int32", "integer": "int32", "long": "int64"},
    **{"ushort": "uint16", "uint": "uint32", "float": "float64", "double": "float64", "boolean": "bool"},
    **{"str": "string", "text": "string", "binary": "bytes", "blob": "bytes", "bytearray": "bytes", "guid": "uuid"},
}
"""Type names in other languages, with the spec's type for each."""

_ARRAY: Final = re.compile(r"\[\](?P<before>.*)|(?P<behind>.*)\[\]|\[(?P<around>.*)\]")
_BETWEEN_WORDS: Final = re.compile(r"[_\-. ]+")


def type_like(text: str, structs: Collection[str] = ()) -> str | None:
    """The type that the user probably meant by `text`, which is neither a primitive type nor one of `structs`, the
    defined structs."""
    base = element_of(text)
    meant = _base_like(base, structs)
    if meant is None or base == text.strip():
        return meant
    return None if meant == "records" else f"[]{meant}"


def element_of(text: str) -> str:
    """`text` without array brackets at any position: `Item` for `Item[]`."""
    array = _ARRAY.fullmatch(text)
    return (text if array is None else array["before"] or array["behind"] or array["around"] or "").strip()


def _base_like(base: str, structs: Collection[str]) -> str | None:
    small = base.lower()
    if small in PRIMITIVES:
        return small
    if camel_case(base) in structs:
        return camel_case(base)
    return _ELSEWHERE.get(small) or close_name(base, [*sorted(structs), *PRIMITIVES])


def camel_case(text: str, neighbours: Collection[str] = ()) -> str:
    """`text` in the style of Kafka's names: `my_field` becomes `MyField`, or `myField` if most `neighbours` start with
    a lower-case letter."""
    name = "".join(part[:1].upper() + part[1:] for part in _BETWEEN_WORDS.split(text))
    in_lower_case = sum(each[:1].islower() for each in neighbours)
    return name[:1].lower() + name[1:] if 2 * in_lower_case > len(neighbours) else name
