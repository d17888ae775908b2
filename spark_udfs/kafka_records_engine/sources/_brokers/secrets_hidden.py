"""Removes the password from texts that brokers send. Otherwise, a password repeated by a broker would be printed and
logged."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_records_engine.sources.client_config import ClientConfig

HIDDEN: Final = "(a text that repeats the password is not shown)"


def without_password(text: str, config: ClientConfig) -> str:
    """The text, or HIDDEN if it contains the password in any encoding."""
    password = config.password
    if not password:
        return text
    lower = text.lower()
    return HIDDEN if any(form.lower() in lower for form in _forms(password, config.username)) else text


def _forms(password: str, username: str) -> Iterator[str]:
    data = password.encode("utf-8", "surrogatepass")
    token = f"\0{username}\0{password}".encode("utf-8", "surrogatepass")
    yield password
    yield password[::-1]
    yield repr(password)[1:-1]
    yield quote(data)
    yield quote_plus(data)
    yield data.hex()
    yield " ".join(f"{byte:02x}" for byte in data)
    yield ", ".join(map(str, data))
    for content in (data, token):
        # The bytes before the password shift its base64 text in one of three ways.
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(content).decode().rstrip("=")
    for shift in (1, 2):
        start = -(-8 * shift // 6)
        inner = b64encode(bytes(shift) + data).decode().rstrip("=")
        kept = inner[start : len(inner) - (1 if (shift + len(data)) % 3 else 0)]
        if len(kept) > 3:
            yield kept
