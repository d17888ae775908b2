"""Keeps idle connections for the next reader, so that not every log partition starts with a handshake."""

from __future__ import annotations

import atexit
import os
import threading
import time
from typing import TYPE_CHECKING, Final

from kafka_records_engine.sources._brokers.connection import Connection

if TYPE_CHECKING:
    from kafka_records_engine.sources._brokers.session import Session
    from kafka_records_engine.sources.client_config import ClientConfig

_Key = tuple[int, str, int, "ClientConfig"]

_KEPT_SECONDS: Final = 30.0
"""How long an idle connection is kept. Brokers close connections that are idle for ten minutes."""

_lock = threading.Lock()
_idle: dict[_Key, tuple[Connection, float]] = {}


def borrow(host: str, port: int, config: ClientConfig, session: Session, until: float) -> Connection:
    """A connection that is not in use: an idle one or a new one. Raises the same errors as `Connection`."""
    key = (os.getpid(), host, port, config)
    with _lock:
        connection, since = _idle.pop(key, (None, 0.0))
    if connection is not None:
        if time.monotonic() < min(since + _KEPT_SECONDS, connection.expires):
            connection.was_idle, connection.session, connection.until = True, session, until
            return connection
        connection.close()
    return Connection(host, port, config, session, until)


def give_back(host: str, port: int, config: ClientConfig, connection: Connection) -> None:
    """Keep a connection for later, unless it still expects an answer or another connection to the broker is already
    kept."""
    key = (os.getpid(), host, port, config)
    with _lock:
        if connection.is_idle and key not in _idle:
            _idle[key] = connection, time.monotonic()
            return
    connection.close()


def close_idle() -> None:
    """Close all idle connections of this process."""
    with _lock:
        mine = [key for key in _idle if key[0] == os.getpid()]
        connections = [_idle.pop(key)[0] for key in mine]
    for connection in connections:
        connection.close()


atexit.register(close_idle)
