"""Converts names in a spec to names for Python and for Kafka's JSON form.

Spec names consist of letters and digits, so a name with a trailing `_` never collides with another spec name.
"""

from __future__ import annotations

import keyword
from collections.abc import Container
from typing import Final

from kafka_records_runtime.text.casing import snake_case

_METHODS: Final = ("decode", "decode_prefix", "encode", "from_json", "to_json", "self", "cls")
_BUILTINS_IN_USE: Final = (
    *("bool", "bytearray", "bytes", "classmethod", "dict", "float", "int", "len", "list", "memoryview", "range", "str"),
    *("tuple", "type"),
)
_OTHERS_OF_PYTHON: Final = (
    *("frozenset", "isinstance", "map", "object", "property", "set", "staticmethod", "super"),
    *("math", "msgspec", "struct", "typing"),
)

RESERVED_MEMBERS: Final = frozenset({*_METHODS, "unknown_tagged_fields", *_BUILTINS_IN_USE, *_OTHERS_OF_PYTHON})
"""Python names that a field must not have, because generated classes and functions use them, or a reader would mistake
them for Python's own."""

RESERVED_CLASSES: Final = frozenset(
    {
        # names that generated modules import
        *("Any", "ClassVar", "Final", "TYPE_CHECKING", "Uuid", "ZERO_UUID"),
        # attributes of every generated class
        *("API_KEY", "CODEC", "KEY_CLASS", "RECORD_TYPE", "VALUE_CLASS", "VERSIONS"),
        # Python's builtins, which a star import would hide
        *("AttributeError", "BaseException", "Ellipsis", "Exception", "IndexError", "KeyError", "LookupError"),
        *("MemoryError", "NotImplemented", "OverflowError", "RecursionError", "RuntimeError", "TypeError"),
        *("UnicodeDecodeError", "UnicodeEncodeError", "UnicodeError", "ValueError"),
    }
)
"""Names that a struct or message class must not have, because generated modules use them."""

RESERVED_STARTS: Final = ("READERS_", "WRITERS_")
"""Prefixes of table names in the private modules of a split module. The module's classes are visible there too."""

RESERVED_CONSTANTS: Final = frozenset({"EMPTY_STRUCT", "RECORDS", "RETIRED_TYPES", "TYPE_CHECKING", "ZERO_UUID"})
"""Names in schema and Spark modules that a message's constant must not hide."""

RESERVED_TOP_FOLDERS: Final = frozenset({"enums", "registry", "schemas", "spark"})
"""Modules at the top of every generated package."""

RESERVED_MODULES: Final = frozenset(
    {
        *("RECORDS", "RECORD_TYPES", "RETIRED_TYPES", "Record"),
        *("UnknownApiKeyRecord", "UnknownTypeRecord", "UnknownVersionRecord"),
        *("decode_record", "decode_records", "encode_record", "record_from_json"),
    }
)
"""Names that a subpackage, its schemas or its Spark functions define. A module with such a name would hide them."""


def python_name(name: str) -> str:
    """The attribute name of a field: snake case, with a trailing `_` if Python or the class uses that name."""
    plain = snake_case(name)
    return f"{plain}_" if keyword.iskeyword(plain) or plain in RESERVED_MEMBERS else plain


def json_name(name: str) -> str:
    """The key of a field in Kafka's JSON form: its name with a lower-case first letter."""
    return name[:1].lower() + name[1:]


def class_name(name: str) -> str:
    """The class name of a struct or message: its name, with a trailing `_` if the module uses that name.

    It starts with an upper-case letter, even if the message name does not. The only other names in a generated module
    that start with an upper-case letter are those in `RESERVED_CLASSES`.
    """
    upper = name[:1].upper() + name[1:]
    return f"{upper}_" if keyword.iskeyword(upper) or is_reserved_class(upper) else upper


def is_reserved_class(name: str) -> bool:
    """Whether generated modules themselves use `name`, which starts with an upper-case letter."""
    return name in RESERVED_CLASSES or name.startswith(RESERVED_STARTS)


def free_name(name: str, taken: Container[str]) -> str:
    """`name`, with as many `_` appended as needed to differ from all `taken` names."""
    while name in taken:
        name += "_"
    return name


def module_name(name: str) -> str:
    """The module of a message or, given a record name without Key and Value, of a record."""
    plain = snake_case(name)
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def spark_names(name: str) -> tuple[str, str, str]:
    """The names that a message's Spark module exports: its columns, and the functions that decode and encode it."""
    plain = snake_case(name)
    return plain.upper(), f"from_{plain}", f"to_{plain}"


def record_name(name: str) -> str:
    """The name of a record: the name of its key or value without the suffix `Key` or `Value`."""
    for suffix in ("Key", "Value"):
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix)
    return name
