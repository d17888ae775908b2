"""How names of a spec become names of Python and of Kafka's JSON form.

Spec names are letters and digits, so a trailing `_` never collides with another name that the spec could
hold.
"""

from __future__ import annotations

import keyword
import re
from typing import Final

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")

RESERVED_MEMBERS: Final = frozenset(
    {
        # what every generated class has
        *("decode", "decode_prefix", "encode", "from_json", "to_json", "unknown_tagged_fields", "self", "cls"),
        # builtins that annotations, defaults and bodies of a generated class use
        *(
            "bool",
            "bytearray",
            "bytes",
            "classmethod",
            "dict",
            "float",
            "frozenset",
            "int",
            "isinstance",
            "len",
            "list",
            "map",
        ),
        *(
            "memoryview",
            "object",
            "property",
            "range",
            "set",
            "staticmethod",
            "str",
            "super",
            "tuple",
            "type",
        ),
        # modules that a generated module may import
        *("math", "msgspec", "struct", "typing"),
    }
)
"""Python names that a field may not take as they are."""

RESERVED_CLASSES: Final = frozenset(
    {
        *("Annotated", "Any", "Callable", "ClassVar", "Final", "Iterable", "Iterator", "Literal", "Mapping"),
        *("Self", "Sequence", "Struct", "StructType", "TypeVar", "Union", "Uuid", "ZERO_UUID"),
        *("EMPTY_STRUCT", "FORMAT", "RECORDS", "SCHEMA", "VERSIONS"),
        *("FieldSchema", "MessageSchema", "RecordSchema", "RetiredType", "StructSchema"),
        *(
            "DecodeError",
            "EncodeError",
            "JsonError",
            "KafkaRecordsError",
            "SchemaFormatError",
            "UnknownMessage",
        ),
        *("UnsupportedVersion",),
        *(
            "AttributeError",
            "BaseException",
            "Exception",
            "IndexError",
            "KeyError",
            "LookupError",
            "MemoryError",
        ),
        *("OverflowError", "RecursionError", "RuntimeError", "TypeError", "UnicodeError", "ValueError"),
        *("UnicodeDecodeError", "UnicodeEncodeError", "Ellipsis", "NotImplemented"),
    }
)
"""Class names that generated modules import or use themselves."""

RESERVED_CONSTANTS: Final = frozenset({"EMPTY_STRUCT", "RECORDS", "RETIRED_TYPES", "TYPE_CHECKING", "ZERO_UUID"})
"""Names of schema and Spark modules that the constant of a message would hide."""

RESERVED_TOP_FOLDERS: Final = frozenset({"enums", "registry", "schemas", "spark"})
"""Modules that every generated package has at its top."""

RESERVED_MODULES: Final = frozenset(
    {"RECORDS", "RECORD_TYPES", "RETIRED_TYPES", "decode_record", "decode_records", "encode_record"}
)
"""What a subpackage, its schemas or its Spark functions define, and what a module of the same name would hide."""


def snake_case(name: str) -> str:
    """`_` before each upper-case letter that follows a lower-case one, then lower case, as Kafka does it."""
    return _HUMP.sub("_", name).lower()


def upper_snake_case(name: str) -> str:
    """The constant that belongs to `name`: `OffsetCommitKey` gives `OFFSET_COMMIT_KEY`."""
    return snake_case(name).upper()


def python_name(name: str) -> str:
    """The attribute of a field: snake case, with a trailing `_` where Python or the class needs the name."""
    plain = snake_case(name)
    return f"{plain}_" if keyword.iskeyword(plain) or plain in RESERVED_MEMBERS else plain


def json_name(name: str) -> str:
    """The key of a field in Kafka's JSON form: its first letter in lower case."""
    return name[:1].lower() + name[1:]


def class_name(name: str) -> str:
    """The class of a struct or message: its name, with a trailing `_` where the module needs the name.

    It starts with an upper-case letter, as the name of a struct has to and that of a message need not: nothing else in
    a generated module does but what `RESERVED_CLASSES` lists.
    """
    upper = name[:1].upper() + name[1:]
    return f"{upper}_" if keyword.iskeyword(upper) or upper in RESERVED_CLASSES else upper


def module_name(name: str) -> str:
    """The module of a message or, given a record's name without Key and Value, of a record."""
    plain = snake_case(name)
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def spark_names(name: str) -> tuple[str, str, str]:
    """What the Spark module of a message gives: its columns, and the functions that decode and encode it."""
    plain = snake_case(name)
    return plain.upper(), f"from_{plain}", f"to_{plain}"


def record_name(name: str) -> str:
    """The name of a record: that of its key or value without the suffix `Key` or `Value`."""
    for suffix in ("Key", "Value"):
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix)
    return name
