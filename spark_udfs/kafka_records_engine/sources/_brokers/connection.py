"""One connection to one broker. Responses arrive in the order of the requests."""

from __future__ import annotations

import logging
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, Final, NamedTuple

from kafka_records_engine.sources._brokers.answer_sizes import largest_answer
from kafka_records_engine.sources._brokers.failures import (
    AnswerTooLarge,
    ConnectionLost,
    NoAnswer,
    PauseTooLong,
    Refused,
)
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
from kafka_records_engine.sources._brokers.secrets_hidden import without_password
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources._brokers.transport import CLOSED, Transport, shown_address, tls_failure, words
from kafka_records_engine.sources.client_config import OAUTHBEARER, ClientConfig
from kafka_records_engine.sources.waiting import pause
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.kafka.error_codes import ErrorCode

SOFTWARE: Final = "kafka-records"
NOTE_AFTER: Final = 5.0
"""After waiting for this many seconds, the program logs what it is waiting for."""

_TELLING_MS: Final = 100
"""A broker that has not answered for this long may speak another protocol; before that, it is just slow."""

_log: Final = logging.getLogger(__name__)

_LARGEST: Final = 0x7FFFFFFF
_TLS_ALERT: Final = 0x15
_RENEWED_AT: Final = 0.8
"""The fraction of a SASL session's lifetime (KIP-368) after which a new connection replaces the old one."""


class _Sent(NamedTuple):
    exchange: Exchange
    version: int
    correlation: int
    largest: int
    """The maximum size of the answer in bytes."""


class Connection:
    """An open connection, authenticated if the broker requires it.

    A complete answer has to arrive within `request_timeout_ms`, and before `until` (a value of `time.monotonic`).
    Raises ConnectionLost if a retry may help, and Refused otherwise.
    """

    def __init__(
        self, host: str, port: int, config: ClientConfig, session: Session | None = None, until: float = inf
    ) -> None:
        self.address = shown_address(host, port, config)
        self.session = session or Session()
        """The session of the connection's current user, with the time limit."""
        self.until = until
        self._config = config
        self._sent: deque[_Sent] = deque()
        self._correlation = 0
        self._spoken: dict[int, range] = {}
        self._answers = 0
        self.expires: float = inf
        """When the broker will require reauthentication (`time.monotonic`)."""
        self.was_idle = False
        """Whether the connection was idle before it was borrowed. If so, the broker may have closed it in the
        meantime."""
        with self._note_if_slow():
            try:
                self._transport = Transport(host, port, config, until)
                self._learn_versions()
                if config.uses_sasl:
                    self._authenticate()
            except BaseException as error:
                if isinstance(error, NoAnswer):
                    self.session.note_silence(self.address)
                self.close()
                raise

    def close(self) -> None:
        """Close the connection; further calls do nothing."""
        transport = getattr(self, "_transport", None)
        if transport is not None:
            transport.close()

    # -- requests ------------------------------------------------------------------------------------------------------

    def version(self, name: str, at_most: int = _LARGEST) -> int:
        """The newest version of a request that both sides support. Raises Refused if there is none."""
        asked = exchange(name)
        both = set(asked.api.versions) & set(self._spoken.get(asked.api.key, ()))
        usable = [version for version in both if version <= at_most]
        if not usable:
            raise Refused(self.address, f"this broker supports no version of {name} that this client knows")
        return max(usable)

    def ask(self, name: str, fields: dict[str, Any], version: int | None = None) -> dict[str, Any]:
        """Send a request and wait for its response."""
        self.send(name, fields, version)
        return self.receive()

    def send(self, name: str, fields: dict[str, Any], version: int | None = None) -> None:
        """Send a request. Its response is received later, after the responses to all earlier requests."""
        asked = exchange(name)
        version = self.version(name) if version is None else version
        self._keep_pause()
        self._correlation = (self._correlation + 1) & _LARGEST
        message = encoded(asked, version, self._correlation, self._config.client_id, fields)
        started, deadline = time.monotonic(), self._deadline()
        self._transport.received = 0
        try:
            self._transport.send(message, deadline)
        except OSError as error:
            raise self._lost(error, started, deadline) from None
        self._sent.append(_Sent(asked, version, self._correlation, largest_answer(name, fields)))

    def receive(self) -> dict[str, Any]:
        """The response to the oldest unanswered request."""
        sent = self._sent.popleft()
        data = self._answer(sent.largest)
        try:
            correlation, fields = decoded(sent.exchange, sent.version, data)
        except KafkaRecordsError as error:
            raise ConnectionLost(self.address, f"the response cannot be decoded: {error}") from None
        if correlation != sent.correlation:
            raise ConnectionLost(self.address, f"answered request {correlation} instead of {sent.correlation}")
        self._answers += 1
        self.session.note_answer(self.address)
        throttled = fields.get("throttle_time_ms", 0)
        if throttled > 0:
            self.session.throttle(self.address, throttled)
        return fields

    @property
    def is_idle(self) -> bool:
        """Whether every request has been answered."""
        return not self._sent

    def _keep_pause(self) -> None:
        """Wait until the pause requested by the broker is over (KIP-219). The broker does not answer before that."""
        seconds = self.session.pause(self.address)
        if seconds <= 0:
            return
        left = min(self.until - time.monotonic(), self._config.patience_ms / 1000)
        if seconds > left:
            if self.session.end <= self.until:
                limit = f"{self.session.limit} ends before that"
            else:
                limit = f"{max(round(left, 1), 0):g} s are left of default.api.timeout.ms"
            what = f"it asks for a pause of {seconds:.0f} s because of a quota, and {limit}"
            raise PauseTooLong(self.address, what)
        pause(seconds)

    def _deadline(self) -> float:
        return min(time.monotonic() + self._config.request_timeout_ms / 1000, self.until)

    def _answer(self, largest: int) -> bytes:
        """The bytes of an answer, without the size field."""
        started, deadline = time.monotonic(), self._deadline()
        self._transport.received = 0
        try:
            head = self._transport.receive(4, deadline)
            if head[0] == _TLS_ALERT and not self._answers and not self._config.uses_tls:
                raise Refused(
                    self.address, "this port uses TLS: set security.protocol to SSL or SASL_SSL in the configuration"
                )
            size = struct.unpack(">i", head)[0]
            if not self._answers and not 0 <= size <= largest:
                raise ConnectionLost(self.address, "the response does not come from a Kafka broker")
            if not 0 <= size <= largest:
                raise self._too_large(size, largest)
            return self._transport.receive(size, deadline)
        except OSError as error:
            raise self._lost(error, started, deadline) from None

    def _too_large(self, size: int, largest: int) -> ConnectionLost:
        error = AnswerTooLarge(
            self.address,
            f"it announces a response of {size} bytes, but what was requested takes at most {largest}: nothing of it "
            "is read",
        )
        error.size = size
        return error

    def _lost(self, error: OSError, started: float, deadline: float) -> KafkaRecordsError:
        if isinstance(error, KafkaRecordsError):
            return error
        if isinstance(error, TimeoutError):
            self.session.note_silence(self.address)
            milliseconds = max(round(1000 * (deadline - started)), 0)
            if not self._answers and not self._transport.received and milliseconds >= _TELLING_MS:
                return self._transport.silence(milliseconds)
            part = f", but for the first {self._transport.received} bytes" if self._transport.received > 4 else ""
            lost = NoAnswer(self.address, f"no response within {milliseconds} ms{part}")
            lost.has_begun = self._transport.received > 4
            return lost
        if isinstance(error, ssl.SSLError):
            return tls_failure(self.address, error, self._config)
        what = words(error)
        if self._answers == 1 and not self._config.uses_sasl:
            # Before authentication, a client may only request the supported versions.
            what = (
                f"{CLOSED} when it received a request: it may require a password (security.protocol SASL_PLAINTEXT or "
                "SASL_SSL)"
            )
        return ConnectionLost(self.address, what)

    # -- opening -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _note_if_slow(self) -> Iterator[None]:
        """Log a note after some seconds without an answer, because a timeout may take half a minute."""

        def note() -> None:
            _log.warning("%s: no response for %g s; still waiting", self.address, NOTE_AFTER)

        timer = threading.Timer(NOTE_AFTER, note)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            # The process must not be forked while the thread runs.
            timer.join()

    def _learn_versions(self) -> None:
        software = {"client_software_name": SOFTWARE, "client_software_version": "1"}
        # Every broker since Kafka 2.4 answers version 3; older ones answer in the form of version 0.
        self.send(API_VERSIONS, software, 3)
        sent = self._sent[-1]
        data = self._answer(sent.largest)
        self._sent.pop()
        self._answers += 1
        code = struct.unpack_from(">h", data, 4)[0] if len(data) >= 6 else -1
        try:
            _, fields = decoded(sent.exchange, 0 if code == ErrorCode.UNSUPPORTED_VERSION else 3, data)
        except KafkaRecordsError:
            raise ConnectionLost(self.address, "the response does not come from a Kafka broker") from None
        if code not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
            raise Refused(self.address, f"rejects ApiVersions: {ErrorCode(code).name}")
        self._spoken = {
            each["api_key"]: range(each["min_version"], each["max_version"] + 1) for each in fields["api_keys"]
        }
        if code == ErrorCode.UNSUPPORTED_VERSION and not self._spoken:
            self._spoken = {exchange(API_VERSIONS).api.key: range(0, 1)}

    def _authenticate(self) -> None:
        name = self._config.sasl_mechanism
        answer = self.ask(SASL_HANDSHAKE, {"mechanism": name}, 1)
        if answer["error_code"]:
            offered = without_password(", ".join(answer["mechanisms"]) or "none", self._config)
            raise Refused(self.address, f"does not support sasl.mechanism {name}; it supports {offered}")
        mechanism = mechanism_of(self._config)
        try:
            token: bytes | None = mechanism.first()
        except ValueError as error:
            raise Refused(self.address, f"{name}: {error}") from error.__cause__
        version = self.version(SASL_AUTHENTICATE, 1)
        lifetime = 0
        while token is not None:
            answer = self.ask(SASL_AUTHENTICATE, {"auth_bytes": token}, version)
            if answer["error_code"]:
                code = ErrorCode(answer["error_code"]).name
                if name == OAUTHBEARER:  # the broker's error may repeat the token
                    raise Refused(self.address, f"rejected the token ({name}): {code}")
                what = without_password(answer["error_message"] or code, self._config)
                raise Refused(
                    self.address,
                    f"rejected this password for user {self._config.username!r} ({name}): {what}",
                )
            lifetime = answer["session_lifetime_ms"]
            try:
                token = mechanism.next(answer["auth_bytes"])
            except ValueError as error:
                raise Refused(self.address, f"{name}: {without_password(str(error), self._config)}") from None
        if lifetime > 0:
            self.expires = time.monotonic() + _RENEWED_AT * lifetime / 1000
