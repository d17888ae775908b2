"""Checks that must hold for any bytes: `tools/fuzz.py` runs them on the messages of a generated package."""

from __future__ import annotations

import gc
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from random import Random
from typing import Any, Final

from kafka_records_runtime.errors import DecodeError, EncodeError, FramingError, KafkaRecordsError
from kafka_records_runtime.records.explain import explain_message, explain_text
from kafka_records_runtime.wire import walker
from tools.random_messages import random_message

BYTES_PER_BYTE: Final = 128
"""The maximum peak memory of a reader in bytes, for each byte of input. A struct of a single byte takes most."""

SPARE_BYTES: Final = 256 * 1024
"""The additional memory in bytes that any input may take: for the error, and for data that readers build once and
keep."""

SECONDS_PER_BYTE: Final = 2e-4
SPARE_SECONDS: Final = 0.5
"""The maximum processor time of a call in seconds. Fuzzers slow down the code, so this is generous and finds only
hangs. Tests check how work grows with the input."""


class RuleBroken(Exception):
    """A check failed for some bytes. The text names it."""


class _OutOfTime(BaseException):
    """The time is up. This is not a subclass of Exception, because a fast path catches those."""


@dataclass(frozen=True)
class Outcome:
    """The result of a call, or the KafkaRecordsError that it raised."""

    value: Any
    error: KafkaRecordsError | None

    def __str__(self) -> str:
        return f"the value {self.value!r}" if self.error is None else f"{type(self.error).__name__}: {self.error}"


@contextmanager
def watched() -> Iterator[None]:
    """Lets `check` measure memory and time. Nothing else may use `tracemalloc` and SIGPROF meanwhile."""

    def stop(*_: object) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
        signal.signal(signal.SIGPROF, before)


def check(cls: Any, version: int, data: bytes) -> None:
    """Read `data` as the message `cls` in every way there is. Raises RuleBroken if a check fails.

    The generated class and the schema walker must return the same message or raise the same error. A lenient reader
    must accept all that the strict one accepts, and name the leniency if it accepts more. Records around the message
    must be read or refused. A message that was read must be writable, printable and explainable. Every exception must
    be a KafkaRecordsError, and no reader may take memory or time out of proportion to its input. Call this within
    `watched`.
    """
    size, codec = len(data), cls.CODEC
    schema, classes = codec.schema, codec.classes
    name = f"{schema.name} v{version}"

    strict = _run(f"{name}: decode", size, DecodeError, lambda: cls.decode(data, version))
    slow = _run(
        f"{name}: the walker", size, DecodeError, lambda: walker.decode(schema, data, version, classes=classes)[0]
    )
    _same(f"{name}: decode", strict, slow)

    prefix = _run(f"{name}: decode_prefix", size, DecodeError, lambda: cls.decode_prefix(data, version))
    slow = _run(
        f"{name}: the walker on a prefix",
        size,
        DecodeError,
        lambda: walker.decode(schema, data, version, classes=classes, allow_trailing=True),
    )
    _same(f"{name}: decode_prefix", prefix, slow)

    found: list[str] = []
    lenient = _run(f"{name}: lenient", size, DecodeError, lambda: codec.decode_lenient(data, version, found))
    _check_lenient(name, prefix, lenient, found)
    _run(f"{name}: plain values", size, DecodeError, lambda: walker.decode(schema, data, version, lenient=True))

    for outcome in (strict, lenient):
        if outcome.error is None:
            message = outcome.value if outcome is strict else outcome.value[0]
            _check_message(name, message, version, size)
    explained = explain_message(schema, version, data, lenient=bool(found))
    _trusted(f"{name}: explain", lambda: explain_text(explained), DecodeError)
    if hasattr(cls, "RECORD_TYPE"):
        _check_records(cls, version, data)


def ready(cls: Any) -> None:
    """Import what is imported on demand, and build what is kept, so that this does not count for an input."""
    for version in cls.VERSIONS:
        data = cls().encode(version)
        cls.decode(data, version)
        cls.CODEC.decode_lenient(data, version, [])
        walker.decode(cls.CODEC.schema, data, version)
        walker.encode(cls.CODEC.schema, cls(), version)
    if hasattr(cls, "RECORD_TYPE"):
        for kind in _records(cls).types.values():
            for each in (kind.key_class, kind.value_class):
                for version in each.VERSIONS:
                    each.CODEC.decode(each().encode(version), version)


def seeds(cls: Any, random: Random, per_version: int) -> Iterator[tuple[int, bytes]]:
    """Initial versions and messages: the default message, random ones, and bytes that claim large sizes."""
    for version in cls.VERSIONS:
        yield version, cls().encode(version)
        for number in range(per_version):
            yield version, random_message(cls, version, random, plain=number % 2 == 0).encode(version)
        for filling in (b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff"):
            yield version, filling * 40


def mutated(data: bytes, random: Random) -> bytes:
    """`data` with one to six changes of the kinds that decoders stumble over."""
    out = bytearray(data)
    for _ in range(random.randint(1, 6)):
        at = random.randint(0, len(out))
        match random.randrange(6):
            case 0:
                out[at : at + 1] = random.choice((b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff"))
            case 1:
                out[at : at + 4] = random.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00"))
            case 2:
                out[at:at] = random.choice((b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x00", random.randbytes(3)))
            case 3:
                del out[at : at + random.randint(1, 8)]
            case 4:
                out[at:at] = out[max(0, at - random.randint(1, 64)) : at] * random.randint(1, 8)
            case _:
                del out[at:]
    return bytes(out[:16_384])


def _run(what: str, size: int, allowed: type[KafkaRecordsError], call: Callable[[], Any]) -> Outcome:
    """The outcome of `call`. Raises RuleBroken if it takes too much memory or time, or raises another error than
    `allowed`."""
    seconds = SPARE_SECONDS + size * SECONDS_PER_BYTE
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    collects = gc.isenabled()
    # Garbage collection scans the whole process, which is not the work of `call`; and Python ignores exceptions that
    # are raised in one.
    gc.disable()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        outcome = _trusted(what, call, allowed)
    except _OutOfTime:
        raise RuleBroken(f"{what} takes more than {seconds:.2f} s for {size} bytes") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if collects:
            gc.enable()
    _, peak = tracemalloc.get_traced_memory()
    if peak - before > SPARE_BYTES + size * BYTES_PER_BYTE:
        raise RuleBroken(f"{what} takes {peak - before} bytes of memory for {size} bytes")
    return outcome


def _trusted(what: str, call: Callable[[], Any], allowed: type[KafkaRecordsError]) -> Outcome:
    try:
        return Outcome(call(), None)
    except allowed as error:
        return Outcome(None, error)
    except Exception as error:
        raise RuleBroken(f"{what} raises {type(error).__name__}: {error}") from error


def _same(what: str, fast: Outcome, slow: Outcome) -> None:
    if str(fast) != str(slow):
        raise RuleBroken(f"{what} gives {fast}, the walker {slow}")


def _check_lenient(name: str, strict: Outcome, lenient: Outcome, found: list[str]) -> None:
    if strict.error is not None:
        if lenient.error is None and not found:
            raise RuleBroken(f"{name}: a lenient reader takes what is refused with {strict}, and names no leniency")
        return
    _same(f"{name}: lenient", lenient, strict)
    if found:
        raise RuleBroken(f"{name}: a lenient reader names {', '.join(found)} if nothing is wrong")


def _check_message(name: str, message: Any, version: int, size: int) -> None:
    schema = message.CODEC.schema
    fast = _run(f"{name}: encode", size, EncodeError, lambda: message.encode(version))
    slow = _run(f"{name}: the walker's encode", size, EncodeError, lambda: walker.encode(schema, message, version))
    _same(f"{name}: encode", fast, slow)
    if fast.error is None:
        again = _run(f"{name}: decode again", size, DecodeError, lambda: type(message).decode(fast.value, version))
        _same(f"{name}: what was written", again, Outcome(message, None))
    _trusted(f"{name}: to_json", lambda: message.to_json(version), EncodeError)


def _records(cls: Any) -> Any:
    return import_module(cls.__module__.rpartition(".")[0]).RECORD_TYPES


def _check_records(cls: Any, version: int, data: bytes) -> None:
    records = _records(cls)
    number = cls.RECORD_TYPE.to_bytes(2, "big")
    kind = records.types[cls.RECORD_TYPE]
    key, value = number + data, None
    if cls is kind.value_class:
        key, value = number + kind.key_class().encode(0), version.to_bytes(2, "big") + data
    for one, other in ((key, value), (data, data)):
        _check_record(f"{cls.__name__} v{version}: decode_record", records, one, other)


def _check_record(what: str, records: Any, key: bytes, value: bytes | None) -> None:
    size = len(key) + len(value or b"")
    outcome = _run(what, size, KafkaRecordsError, lambda: records.decode(key, value))
    if outcome.error is not None:
        if not isinstance(outcome.error, DecodeError | FramingError):
            raise RuleBroken(f"{what} raises {outcome}")
        return
    record = outcome.value
    if record.is_lenient and (record.raw_key, record.raw_value) != (key, value):
        raise RuleBroken(f"{what} reads leniently and does not keep the bytes")
    if not record.is_lenient and (record.raw_key, record.raw_value) != (None, None):
        raise RuleBroken(f"{what} keeps the bytes of a record that it read strictly")
