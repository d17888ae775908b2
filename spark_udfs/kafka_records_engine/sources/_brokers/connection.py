"""One connection to one broker: requests go out, responses come in, in the same order."""

from __future__ import annotations

import logging
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_records_engine.sources._brokers.failures import ConnectionLost, Refused
from kafka_records_engine.sources._brokers.requests_sent import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Exchange,
    decoded,
    encoded,
    exchange,
)
from kafka_records_engine.sources._brokers.sasl import mechanism_of
from kafka_records_runtime.error_codes import ErrorCode
from kafka_records_runtime.errors import KafkaRecordsError

if TYPE_CHECKING:
    from kafka_records_engine.sources.client_config import ClientConfig

SOFTWARE: Final = "kafka-records"
TOLD_AFTER: Final = 5.0
"""Seconds after which who waits is told for what."""

_log: Final = logging.getLogger(__name__)

_LARGEST: Final = 0x7FFFFFFF
_LARGEST_FIRST: Final = 1 << 20
"""Bytes that no broker needs to say which versions it speaks. Other servers begin with text, which is a huge number."""
_BUFFER: Final = 1 << 16
_TLS_ALERT: Final = 0x15
_CLOSED: Final = "it closed the connection"
_RENEWED_AT: Final = 0.8
"""The part of a SASL session (KIP-368) after which a new connection takes the place of this one."""


class _Sent(NamedTuple):
    exchange: Exchange
    version: int
    correlation: int


class Connection:
    """An open connection, authenticated where the broker wants that.

    Raises ConnectionLost where another try may help, Refused where it does not.
    """

    def __init__(self, host: str, port: int, config: ClientConfig) -> None:
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._config = config
        self._sent: deque[_Sent] = deque()
        self._correlation = 0
        self._spoken: dict[int, range] = {}
        self._wait_until = 0.0
        self._answers = 0
        self.expires: float = float("inf")
        """When the broker will want to see the password again (`time.monotonic`)."""
        self.was_idle = False
        """Whether it has waited for somebody to use it: the broker may have closed it meanwhile."""
        with self._told_if_slow():
            self._socket = self._connected(host, port)
            self._received = self._socket.makefile("rb", _BUFFER)
            try:
                self._learn_versions()
                if config.uses_sasl:
                    self._authenticate()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close it; doing so again does nothing."""
        for held in (getattr(self, "_received", None), getattr(self, "_socket", None)):
            if held is not None:
                try:
                    held.close()
                except OSError:
                    continue

    # -- requests ------------------------------------------------------------------------------------------------------

    def version(self, name: str, at_most: int = _LARGEST) -> int:
        """The newest version of a request that both sides know. Raises Refused when there is none."""
        asked = exchange(name)
        both = set(asked.api.versions) & set(self._spoken.get(asked.api.key, ()))
        usable = [version for version in both if version <= at_most]
        if not usable:
            raise Refused(self.address, f"this broker speaks no version of {name} that is known here")
        return max(usable)

    def ask(self, name: str, fields: dict[str, Any], version: int | None = None) -> dict[str, Any]:
        """Send a request and wait for its response."""
        self.send(name, fields, version)
        return self.receive()

    def send(self, name: str, fields: dict[str, Any], version: int | None = None) -> None:
        """Send a request; its response is received later, after those of all requests before."""
        asked = exchange(name)
        version = self.version(name) if version is None else version
        # The broker has asked to be left alone for a while (KIP-219); it would only let us wait.
        pause = self._wait_until - time.monotonic()
        if pause > 0:
            sleep(pause)
        self._correlation = (self._correlation + 1) & _LARGEST
        message = encoded(asked, version, self._correlation, self._config.client_id, fields)
        try:
            self._socket.sendall(struct.pack(">i", len(message)) + message)
        except OSError as error:
            raise self._lost(error) from None
        self._sent.append(_Sent(asked, version, self._correlation))

    def receive(self) -> dict[str, Any]:
        """The response to the oldest request that has none yet."""
        sent = self._sent.popleft()
        try:
            size = self._read(4)
            data = self._read(struct.unpack(">i", size)[0], size)
        except OSError as error:
            raise self._lost(error) from None
        try:
            correlation, fields = decoded(sent.exchange, sent.version, data)
        except KafkaRecordsError as error:
            raise ConnectionLost(self.address, f"its answer cannot be read: {error}") from None
        if correlation != sent.correlation:
            raise ConnectionLost(self.address, f"answered request {correlation} instead of {sent.correlation}")
        self._answers += 1
        throttled = fields.get("throttle_time_ms", 0)
        if throttled > 0:
            self._wait_until = time.monotonic() + throttled / 1000
        return fields

    @property
    def is_idle(self) -> bool:
        """Whether every request has its response."""
        return not self._sent

    def _read(self, size: int, before: bytes = b"") -> bytes:
        if before and before[0] == _TLS_ALERT and not self._config.uses_tls:
            raise Refused(
                self.address, "it speaks TLS there: set security.protocol to SSL or SASL_SSL in the configuration"
            )
        if size < 0 or (not self._answers and size > _LARGEST_FIRST):
            raise ConnectionLost(self.address, "what answers there is no Kafka broker")
        data: bytes = self._received.read(size)
        if len(data) < size:
            raise ConnectionResetError(_CLOSED)
        return data

    def _lost(self, error: OSError) -> KafkaRecordsError:
        if isinstance(error, KafkaRecordsError):
            return error
        if isinstance(error, TimeoutError):
            if not self._answers:
                return self._silent(self._config.request_timeout_ms)
            return ConnectionLost(self.address, f"no answer within {self._config.request_timeout_ms} ms")
        if isinstance(error, ssl.SSLError):
            return _tls_failure(self.address, error, self._config)
        what = _words(error)
        if self._answers == 1 and not self._config.uses_sasl:
            # Who has to say who one is may ask for versions, and for nothing else.
            what = (
                f"{_CLOSED} when it was asked something: it may want a password (security.protocol SASL_PLAINTEXT or "
                "SASL_SSL)"
            )
        return ConnectionLost(self.address, what)

    # -- opening -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _told_if_slow(self) -> Iterator[None]:
        """Tells who waits that nobody has answered yet: a time-out may be half a minute."""

        def tell() -> None:
            _log.warning("%s: nobody has answered there for %g s; it is waited for", self.address, TOLD_AFTER)

        timer = threading.Timer(TOLD_AFTER, tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            # Whoever forks processes next must not do it with a thread.
            timer.join()

    def _silent(self, milliseconds: int) -> ConnectionLost:
        """Somebody listens there, and has not sent a byte."""
        protocol = self._config.security_protocol
        other = "in plain text, which does not know TLS" if self._config.uses_tls else "that waits for TLS"
        return ConnectionLost(
            self.address,
            f"it takes connections and has not said a word within {milliseconds} ms: a listener {other} "
            f"(security.protocol is {protocol} here), a broker that hangs, or something else that is no broker",
        )

    def _connected(self, host: str, port: int) -> socket.socket:
        timeout = self._config.connect_timeout_ms / 1000
        try:
            plain = socket.create_connection((host, port), timeout=timeout)
        except TimeoutError:
            raise ConnectionLost(
                self.address, f"no broker answers there within {self._config.connect_timeout_ms} ms"
            ) from None
        except socket.gaierror as error:
            raise ConnectionLost(self.address, f"no such host: {error.strerror or error}") from None
        except OSError as error:
            raise ConnectionLost(self.address, f"no broker can be reached there: {_words(error)}") from None
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if not self._config.uses_tls:
                plain.settimeout(self._config.request_timeout_ms / 1000)
                return plain
            secured = self._config.tls_context().wrap_socket(plain, server_hostname=host)
            secured.settimeout(self._config.request_timeout_ms / 1000)
            return secured
        except ssl.SSLError as error:
            plain.close()
            raise _tls_failure(self.address, error, self._config) from None
        except TimeoutError:
            plain.close()
            raise self._silent(self._config.connect_timeout_ms) from None
        except OSError as error:
            plain.close()
            raise ConnectionLost(
                self.address, f"{_words(error)} while TLS was agreed on: does this port speak TLS?"
            ) from None
        except BaseException:
            plain.close()
            raise

    def _learn_versions(self) -> None:
        software = {"client_software_name": SOFTWARE, "client_software_version": "1"}
        # Version 3 (Kafka 2.4) is answered by every broker since, and by older ones in the form of version 0.
        self.send(API_VERSIONS, software, 3)
        sent = self._sent[-1]
        try:
            size = self._read(4)
            data = self._read(struct.unpack(">i", size)[0], size)
        except OSError as error:
            raise self._lost(error) from None
        self._sent.pop()
        self._answers += 1
        code = struct.unpack_from(">h", data, 4)[0] if len(data) >= 6 else -1
        try:
            _, fields = decoded(sent.exchange, 0 if code == ErrorCode.UNSUPPORTED_VERSION else 3, data)
        except KafkaRecordsError:
            raise ConnectionLost(self.address, "what answers there is no Kafka broker") from None
        if code not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
            raise Refused(self.address, f"does not say what it can: {ErrorCode(code).name}")
        self._spoken = {
            each["api_key"]: range(each["min_version"], each["max_version"] + 1) for each in fields["api_keys"]
        }
        if code == ErrorCode.UNSUPPORTED_VERSION and not self._spoken:
            self._spoken = {exchange(API_VERSIONS).api.key: range(0, 1)}

    def _authenticate(self) -> None:
        name = self._config.sasl_mechanism
        answer = self.ask(SASL_HANDSHAKE, {"mechanism": name}, 1)
        if answer["error_code"]:
            offered = ", ".join(answer["mechanisms"]) or "none"
            raise Refused(self.address, f"does not take sasl.mechanism {name}; it takes {offered}")
        mechanism = mechanism_of(self._config)
        token: bytes | None = mechanism.first()
        version = self.version(SASL_AUTHENTICATE, 1)
        lifetime = 0
        while token is not None:
            answer = self.ask(SASL_AUTHENTICATE, {"auth_bytes": token}, version)
            if answer["error_code"]:
                what = answer["error_message"] or ErrorCode(answer["error_code"]).name
                raise Refused(
                    self.address,
                    f"refused user {self._config.username!r} and the password by {name}: {what}",
                )
            lifetime = answer["session_lifetime_ms"]
            try:
                token = mechanism.next(answer["auth_bytes"])
            except ValueError as error:
                raise Refused(self.address, f"{name}: {error}") from None
        if lifetime > 0:
            self.expires = time.monotonic() + _RENEWED_AT * lifetime / 1000


def _words(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def _tls_failure(address: str, error: ssl.SSLError, config: ClientConfig) -> KafkaRecordsError:
    """What went wrong with TLS. None of it goes away by itself, but for a connection that was simply closed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in (62, 64):  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
            return Refused(
                address,
                "its certificate is for another host: ask it by the name in its certificate, or set "
                "ssl.endpoint.identification.algorithm to nothing",
            )
        store = config.truststore_location or "the certificates of this machine"
        return Refused(address, f"its certificate is not trusted by {store}: {error.verify_message}")
    reason = (error.reason or "").upper()
    # TLS 1.3 has an alert of its own for it; Java calls no certificate a bad one.
    if any(word in reason for word in ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "HANDSHAKE_FAILURE")) and (
        not config.has_keystore
    ):
        return Refused(address, "it demands a certificate of the client: set ssl.keystore.location")
    if "ALERT" in reason:
        return Refused(address, f"it ended TLS: {reason.lower().replace('_', ' ')}")
    if "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER" in reason:
        return Refused(address, "it speaks no TLS there: set security.protocol to PLAINTEXT or SASL_PLAINTEXT")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return ConnectionLost(address, "it closed the connection while TLS was agreed on: does this port speak TLS?")
    return Refused(address, f"TLS failed: {error.reason or error}")
