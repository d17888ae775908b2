"""The transport of a connection to a broker: opens and encrypts the connection, and sends and receives bytes. Each
operation has a deadline."""

from __future__ import annotations

import re
import socket
import ssl
import struct
import time
from typing import TYPE_CHECKING, Final

from kafka_records_engine.sources._brokers.failures import ConnectionLost, NoAnswer, Refused
from kafka_records_engine.sources._brokers.secrets_hidden import without_password
from kafka_records_engine.sources._brokers.tls import context_of
from kafka_records_engine.sources.waiting import next_wait
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.text.printable import printable

if TYPE_CHECKING:
    from kafka_records_engine.sources.client_config import ClientConfig

CLOSED: Final = "it closed the connection"

_PIECE: Final = 1 << 18
"""The number of bytes to receive at once."""
_NO_HOST: Final = re.compile(r"[\x00-\x20\x7f/@\\?#]")
_LONGEST_HOST: Final = 255
_SHOWN: Final = 80


def shown_address(host: str, port: int, config: ClientConfig) -> str:
    """The address of a broker, as messages show it. It comes from other brokers, so it may contain anything."""
    host = without_password(host, config)
    host = printable(host if len(host) <= _LONGEST_HOST else f"{host[:_SHOWN]}…")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Transport:
    """An open socket. Raises ConnectionLost or Refused if it cannot be opened, and OSError later."""

    def __init__(self, host: str, port: int, config: ClientConfig, until: float) -> None:
        """`until` is the latest time (`time.monotonic`) for a broker to answer."""
        self._address = shown_address(host, port, config)
        self._config = config
        started = time.monotonic()
        self._until = min(started + config.connect_timeout_ms / 1000, until)
        self._milliseconds = min(config.connect_timeout_ms, max(round(1000 * (self._until - started)), 0))
        if not host or len(host) > _LONGEST_HOST or _NO_HOST.search(host) or not 0 < port < 65536:
            raise ConnectionLost(
                self._address, "a broker advertises this address, but it is not a host name with a port"
            )
        self._socket = self._opened(host, port)
        self.received = 0
        """The bytes received so far of the current message."""

    def close(self) -> None:
        """Close the socket; further calls do nothing."""
        try:
            self._socket.close()
        except OSError:
            return

    def send(self, message: bytes, until: float) -> None:
        """Send a message, preceded by its size."""
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        self._socket.sendall(struct.pack(">i", len(message)) + message)

    def receive(self, size: int, until: float) -> bytes:
        """Receive exactly the given number of bytes. Memory is allocated only for bytes that have arrived, not for
        announced ones."""
        data = bytearray()
        while len(data) < size:
            piece = self._received(min(size - len(data), _PIECE), until)
            if not piece:
                raise ConnectionResetError(CLOSED)
            data += piece
            self.received += len(piece)
        return bytes(data)

    def _received(self, size: int, until: float) -> bytes:
        while True:
            self._socket.settimeout(next_wait(until))
            try:
                return self._socket.recv(size)
            except TimeoutError:
                continue  # next_wait raises an error after the deadline

    # -- opening -------------------------------------------------------------------------------------------------------

    def _opened(self, host: str, port: int) -> socket.socket:
        plain = self._connected(host, port)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if not self._config.uses_tls:
                return plain
            plain.settimeout(max(self._until - time.monotonic(), 0.001))
            return context_of(self._config).wrap_socket(plain, server_hostname=host)
        except BaseException as error:
            plain.close()
            if isinstance(error, ssl.SSLError):
                raise tls_failure(self._address, error, self._config) from None
            if isinstance(error, TimeoutError):
                raise self.silence(self._milliseconds) from None
            if isinstance(error, OSError) and not isinstance(error, KafkaRecordsError):
                what = f"{words(error)} during the TLS handshake: does this port speak TLS?"
                raise ConnectionLost(self._address, what) from None
            if isinstance(error, UnicodeError) or type(error) is ValueError:
                raise ConnectionLost(self._address, "no certificate can match such a host name") from None
            raise

    def _connected(self, host: str, port: int) -> socket.socket:
        try:
            places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            raise ConnectionLost(self._address, f"no such host: {error.strerror or error}") from None
        except (OSError, ValueError) as error:  # invalid characters in a host name raise ValueError
            raise ConnectionLost(self._address, f"no such host: {printable(str(error))[:_SHOWN]}") from None
        failed: OSError = TimeoutError()
        for number, (family, kind, protocol, _, place) in enumerate(places):
            # A name may have several addresses, and the first one may be unreachable, so each address gets a share of
            # the time.
            left = (self._until - time.monotonic()) / (len(places) - number)
            if left <= 0:
                break
            opened = None
            try:
                opened = socket.socket(family, kind, protocol)
                opened.settimeout(left)
                opened.connect(place)
                return opened
            except OSError as error:
                failed = error
                if opened is not None:
                    opened.close()
        if isinstance(failed, TimeoutError):
            raise NoAnswer(self._address, f"no broker answered at this address within {self._milliseconds} ms")
        raise ConnectionLost(self._address, f"no broker can be reached at this address: {words(failed)}")

    def silence(self, milliseconds: int) -> NoAnswer:
        """The error for an address that accepts connections but has not sent a byte."""
        protocol = self._config.security_protocol
        other = "without TLS" if self._config.uses_tls else "that expects TLS"
        return NoAnswer(
            self._address,
            f"it accepts connections but has sent nothing within {milliseconds} ms: a listener {other} "
            f"(security.protocol is {protocol} here), a broker that hangs, or something else that is not a broker",
        )


def words(error: OSError) -> str:
    """The operating system's message for an error."""
    return error.strerror or str(error) or type(error).__name__


def tls_failure(address: str, error: ssl.SSLError, config: ClientConfig) -> KafkaRecordsError:
    """The error for a TLS failure. A retry may help only if the connection was just closed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in (62, 64):  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
            return Refused(
                address,
                "its certificate is for another host: connect to the name in the certificate, or set "
                "ssl.endpoint.identification.algorithm to an empty value",
            )
        store = config.truststore_location or "the certificates of this machine"
        return Refused(address, f"its certificate is not trusted by {store}: {error.verify_message}")
    reason = (error.reason or "").upper()
    # TLS 1.3 has a separate alert for a missing certificate; Java reports it as a bad one.
    if any(word in reason for word in ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "HANDSHAKE_FAILURE")) and (
        not config.has_keystore
    ):
        return Refused(address, "it requires a client certificate: set ssl.keystore.location")
    if "ALERT" in reason:
        return Refused(address, f"it ended TLS: {reason.lower().replace('_', ' ')}")
    if "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER" in reason:
        return Refused(
            address, "it does not speak TLS on this port: set security.protocol to PLAINTEXT or SASL_PLAINTEXT"
        )
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return ConnectionLost(address, "it closed the connection during the TLS handshake: does this port speak TLS?")
    return Refused(address, f"TLS failed: {error.reason or error}")
