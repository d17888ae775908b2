"""Keys and values for the tests of framing: the forms for rows and for columns must agree on them."""

from __future__ import annotations

from typing import Final

PREFIXES: Final[tuple[tuple[bytes | None, int | None], ...]] = (
    (None, None),
    (b"", None),
    (b"\x00", None),
    (b"\xff", None),
    (b"\x00\x00", 0),
    (b"\x00\x01", 1),
    (b"\x01\x00", 256),
    (b"\x00\x80", 128),
    (b"\x7f\xff", 32767),
    (b"\x80\x00", -32768),
    (b"\xff\xff", -1),
    (b"\xff\xfe\x01", -2),
    (b"\x00\x63 a type or version that nobody knows", 99),
    (b"\x00\x01" + bytes(1 << 20), 1),
    (b"\x80\x80" + b"\xff" * 70_000, -32640),
    (b"00", 12336),
)
"""Keys or values, and the int16 that each starts with."""

LONGEST: Final = b"x" * 32767

TEXTS: Final = (b"", b"g", b"gr", "größe".encode(), b"\xff", b"\x00", LONGEST, LONGEST + b"x", bytes(70_000))
"""Strings that a key may begin with, and two that are too long for one."""

KEYS: Final[tuple[bytes | None, ...]] = (
    *(data for data, _ in PREFIXES),
    b"\x00\x01\x00\x01",
    b"\x00\x01\x00\x01g",
    b"\x00\x02\x00\x01g",
    b"\x00\x63\x00\x01g and more",
    b"\x00\x01\x00\x02gr",
    b"\x00\x01\x00\x03gr",
    b"\x00\x01\x00\x00",
    b"\x00\x01\x00\x07" + "größe".encode(),
    b"\x00\x01\x00\x01\xff",
    b"\x00\x01\x00\x01\x00",
    b"\x00\x01\x7f\xff" + LONGEST,
    b"\x00\x01\x80\x00" + LONGEST + b"x",
    b"\x00\x01\xff\xff",
)
"""Keys whose messages begin with a string, or with something else."""
