"""Kafka's UUID: sixteen bytes that print as 22 characters of URL-safe base64."""

from __future__ import annotations

import re
import sys
from base64 import b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from uuid import UUID

_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?")


class Uuid(bytes):
    """A 16-byte value, immutable and hashable, printed as in Kafka's tools.

    Kafka has no null UUID on the wire: sixteen zero bytes, `ZERO_UUID`, mean "none" (`org.apache.kafka.common.Uuid`).
    The standard library's `UUID` has the same bytes in the same order, but another text form. `Uuid(UUID(...))` and
    `UUID(bytes=Uuid(...))` convert one to the other.
    """

    __slots__ = ()

    def __new__(cls, value: bytes | UUID) -> Self:
        raw: Any = standard_uuid_bytes(value) or value
        if len(raw) != 16:
            raise ValueError(f"a Uuid must have 16 bytes, got {len(raw)}")
        return super().__new__(cls, raw)

    @classmethod
    def from_string(cls, text: str) -> Self:
        """Read Kafka's text form: 22 characters of URL-safe base64, with or without the two `=` of padding.

        Raises ValueError for anything else.
        """
        if not _TEXT.fullmatch(text):
            raise ValueError(f"{text!r} is not a Kafka uuid: write 22 characters of URL-safe base64")
        return cls(b64decode(text[:22] + "==", altchars=b"-_"))

    def __str__(self) -> str:
        return urlsafe_b64encode(self).rstrip(b"=").decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid.from_string({str(self)!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[bytes]]:
        return type(self), (bytes(self),)


def standard_uuid_bytes(value: object) -> bytes | None:
    """The bytes of a standard library `UUID`; None for any other value."""
    # A caller with a uuid.UUID has already imported uuid. Importing it here would cost all other callers milliseconds.
    module = sys.modules.get("uuid")
    return value.bytes if module is not None and isinstance(value, module.UUID) else None


def uuid_text(value: object) -> str:
    """Kafka's text form of a Uuid, or of any value that `encode` accepts as one. A string is returned unchanged."""
    raw = standard_uuid_bytes(value) or value
    return str(Uuid(raw)) if isinstance(raw, bytes) else str(raw)


ZERO_UUID: Final = Uuid(bytes(16))
