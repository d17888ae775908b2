"""Kafka's UUID: sixteen bytes that print as 22 characters of URL-safe base64."""

from __future__ import annotations

import re
from base64 import b64decode, urlsafe_b64encode
from typing import Final, Self

_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?")


class Uuid(bytes):
    """A 16-byte value, immutable and hashable, printed as Kafka's tools print it.

    Kafka has no null UUID on the wire: sixteen zero bytes, `ZERO_UUID`, stand for "none"
    (`org.apache.kafka.common.Uuid`).
    """

    __slots__ = ()

    def __new__(cls, value: bytes) -> Self:
        if len(value) != 16:
            raise ValueError(f"a Uuid has 16 bytes, got {len(value)}")
        return super().__new__(cls, value)

    @classmethod
    def from_string(cls, text: str) -> Self:
        """Read Kafka's text form: 22 characters of URL-safe base64, with or without the two `=` of padding.

        Raises ValueError for anything else.
        """
        if not _TEXT.fullmatch(text):
            raise ValueError(f"{text!r} is no Kafka uuid, which is 22 characters of URL-safe base64")
        return cls(b64decode(text[:22] + "==", altchars=b"-_"))

    def __str__(self) -> str:
        return urlsafe_b64encode(self).rstrip(b"=").decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid.from_string({str(self)!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[bytes]]:
        return type(self), (bytes(self),)


ZERO_UUID: Final = Uuid(bytes(16))
