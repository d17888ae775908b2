"""Converts the `default` of a field, a text in the spec, to a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kafka_records_codegen.spec.attributes import FieldSpec
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import natural_default
from kafka_records_runtime.wire.primitives import INTEGERS, MAX_STRING

_DECIMAL: Final = re.compile(r"[+-]?[0-9]+")
_HEXADECIMAL: Final = re.compile(r"0x[0-9a-fA-F]+")
_JAVA_DOUBLE: Final = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<nan>NaN)|(?P<infinity>Infinity)"
    r"|(?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"|(?P<hexadecimal>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)
"""The texts that `java.lang.Double.parseDouble` accepts, without surrounding blanks."""


def parse_default(field: FieldSpec) -> object:
    """The effective default of `field`.

    Raises ValueError with a text that says what is allowed. JSON's null is not a default. Only the text `null` makes
    null the default, and only if every version of the field allows null.
    """
    text = field.default
    base = field.type.base
    if base == "records" and not field.type.is_array:
        return None
    if not text:
        return natural_default(str(field.type))
    if field.type.is_array or base in ("bytes", "string") or field.type.is_struct:
        if text == "null":
            _check_null(field)
            return None
        if base == "string" and not field.type.is_array:
            return _string(text)
        kind = "an array" if field.type.is_array else "bytes" if base == "bytes" else "a struct"
        raise ValueError(f"the default of {kind} must be empty (leave the attribute out) or 'null', found {text!r}")
    return _PARSERS[base](text) if base in _PARSERS else _integer(base, text)


def _check_null(field: FieldSpec) -> None:
    if not field.nullable.contains_all(field.versions):
        raise ValueError(
            "null can be the default only if the field is nullable in all its versions: it has versions "
            f"{field.versions}, but nullableVersions {field.nullable}"
        )


def _string(text: str) -> str:
    """`text`, if it is not too long. Compact strings have the same limit. (A spec file can contain only valid
    UTF-8.)"""
    size = len(text.encode())
    if size > MAX_STRING:
        raise ValueError(f"the default of a string can have at most {MAX_STRING} bytes of UTF-8, found {size}")
    return text


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"the default of a bool must be true or false, found {text!r}")
    return text.lower() == "true"


def _integer(base: str, text: str) -> int:
    _, lowest, highest = INTEGERS[base]
    digits = text.lstrip("+-")
    if _HEXADECIMAL.fullmatch(text):
        value = int(text, 16)
    elif _DECIMAL.fullmatch(text) is None:
        raise ValueError(
            f"the default of {base} must be a whole number, decimal or hexadecimal with 0x, found {text!r}"
        )
    elif len(digits) > 1 and digits.startswith("0"):
        raise ValueError(
            f"{text!r} starts with a zero: Kafka checks it as decimal and then compiles it as octal; "
            "write the number without the zero, or in hexadecimal with 0x"
        )
    else:
        value = int(text) if len(digits) <= len(str(highest)) else highest + 1
    if not lowest <= value <= highest:
        raise ValueError(f"the default of {base} must be between {lowest} and {highest}, found {text}")
    return value


def _float(text: str) -> float:
    match = _JAVA_DOUBLE.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"the default of a float64 must be a number such as 1.5, 1e3, NaN or -Infinity, found {text!r}"
        )
    sign = -1.0 if match["sign"] == "-" else 1.0
    if match["hexadecimal"]:
        try:
            return sign * float.fromhex(match["hexadecimal"])
        except OverflowError:
            return sign * float("inf")
    return sign * float(match["decimal"] or match["infinity"] or match["nan"])


def _uuid(text: str) -> Uuid:
    try:
        return Uuid.from_string(text)
    except ValueError:
        raise ValueError(
            "the default of a uuid must be 16 bytes as 22 characters of URL-safe base64 (A-Z a-z 0-9 - _), "
            f"found {text!r}"
        ) from None


_PARSERS: Final[dict[str, Callable[[str], object]]] = {"bool": _boolean, "float64": _float, "uuid": _uuid}
