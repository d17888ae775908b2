"""Calls that may fail, without try in every test."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from kafka_records_runtime.errors import KafkaRecordsError

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=KafkaRecordsError)


def outcome(kind: type[E], function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[T | None, E | None]:
    """What the call returns and None, or None and the error of `kind` it raised; other errors go through."""
    try:
        return function(*args, **kwargs), None
    except kind as error:
        return None, error
