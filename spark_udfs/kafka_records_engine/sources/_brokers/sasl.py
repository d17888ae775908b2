"""SASL authentication, with the mechanisms that brokers support: PLAIN (RFC 4616), SCRAM-SHA-256 and -512 (RFC 5802,
KIP-84), OAUTHBEARER (RFC 7628)."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from base64 import b64decode, b64encode, urlsafe_b64decode
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from kafka_records_engine.sources._client.oauth import TokenError
from kafka_records_engine.sources.client_config import OAUTHBEARER, PLAIN, SCRAM, ClientConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FEWEST_ITERATIONS: Final = 4096
_MOST_ITERATIONS: Final = 10_000_000


class Mechanism(Protocol):
    """The messages of one authentication."""

    def first(self) -> bytes:
        """The first message to send."""

    def next(self, answer: bytes) -> bytes | None:
        """The next message to send, or None once the broker has proved its identity. Raises ValueError if it fails
        to."""


def mechanism_of(config: ClientConfig) -> Mechanism:
    """The implementation of the configured mechanism."""
    if config.sasl_mechanism == PLAIN:
        return Plain(config.username, config.password)
    if config.sasl_mechanism == OAUTHBEARER:
        assert config.token is not None  # ClientConfig has checked this
        return OAuthBearer(config.token, config.sasl_extensions)
    return Scram(SCRAM[config.sasl_mechanism], config.username, config.password)


class Plain:
    """Sends the user name and password unchanged."""

    def __init__(self, username: str, password: str) -> None:
        self._token = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        return self._token

    def next(self, answer: bytes) -> bytes | None:
        return None


class OAuthBearer:
    """Sends a token signed by a third party (KIP-255), with Kafka's SASL extensions (KIP-342)."""

    def __init__(self, token: Callable[[], str], extensions: Mapping[str, str]) -> None:
        self._token = token
        self._extensions = extensions
        self._advice = ""

    def first(self) -> bytes:
        """Raises ValueError if the token cannot be obtained or is invalid; the message does not quote it."""
        try:
            token = self._token()
        except TokenError:
            raise
        except Exception as error:  # this is the user's own function, whose errors may contain a secret
            what = f"the token function failed with {type(error).__name__}: call it directly to see why"
            raise ValueError(what) from error
        if not _TOKEN.fullmatch(token if type(token) is str else ""):
            raise ValueError("invalid token: it may contain only letters, digits and - . _ ~ + / =")
        self._advice = _advice_about(token)
        told = "".join(f"\x01{name}={value}" for name, value in self._extensions.items())
        return f"n,,\x01auth=Bearer {token}{told}\x01\x01".encode()

    def next(self, answer: bytes) -> bytes | None:
        if not answer:
            return None
        try:
            status = str(json.loads(answer)["status"])
        except (ValueError, LookupError, TypeError):
            status = ""
        why = status if _STATUS.fullmatch(status) else "no reason given"
        raise ValueError(f"the broker rejected the token: {why}: {self._advice}")


def _advice_about(token: str) -> str:
    """What to do about a rejected token. Of the token, only the expiry time is shown, and only if it has passed."""
    try:
        claims = token.split(".")[1]
        expires = json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
        if expires < time.time():
            ended = datetime.fromtimestamp(expires, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            return f"it expired at {ended}: get a new one, and compare the clocks"
    except (ValueError, LookupError, TypeError, OverflowError, OSError):
        pass
    return "compare its issuer, audience, scope and key with what the broker expects"


_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_STATUS: Final = re.compile(r"[a-z_]{1,40}")


class Scram:
    """SCRAM: client and broker prove to each other that they know the password, without sending it."""

    def __init__(self, digest: str, username: str, password: str, nonce: str | None = None) -> None:
        self._digest = digest
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        # Kafka escapes only the characters that SCRAM reserves, and does not normalize names or passwords.
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={self._nonce}"
        self._signature: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._first}".encode()

    def next(self, answer: bytes) -> bytes | None:
        fields = dict(part.split("=", 1) for part in answer.decode().split(",") if "=" in part)
        if "e" in fields:
            raise ValueError(f"the broker rejected the login: {fields['e']}")
        if self._signature is not None:
            if not hmac.compare_digest(b64decode(fields.get("v", "")), self._signature):
                raise ValueError("the broker could not prove that it knows the password")
            return None
        nonce, iterations = fields.get("r", ""), _number(fields.get("i", ""))
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise ValueError("the broker answered with the nonce of another exchange")
        if not _FEWEST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
            allowed = f"{_FEWEST_ITERATIONS} to {_MOST_ITERATIONS}"
            raise ValueError(f"the broker asks for {iterations} iterations, not {allowed}")
        if "s" not in fields:
            raise ValueError("the broker sent no salt")
        salted = hashlib.pbkdf2_hmac(self._digest, self._password, b64decode(fields["s"]), iterations)
        bare = f"c=biws,r={nonce}"
        said = f"{self._first},{answer.decode()},{bare}".encode()
        client_key = self._hmac(salted, b"Client Key")
        mask = self._hmac(hashlib.new(self._digest, client_key).digest(), said)
        proof = bytes(one ^ other for one, other in zip(client_key, mask, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), said)
        return f"{bare},p={b64encode(proof).decode()}".encode()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._digest).digest()


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > len(str(_MOST_ITERATIONS)):
        raise ValueError(f"the broker asks for {text!r} iterations, which is not a valid number")
    return int(text)
