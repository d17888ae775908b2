"""Checks the values of every contender of `columns.py` before it is timed.

The generated classes are the reference. They must write the bytes that they read, and fail only on the broken rows. All
other contenders must return the same values, row by row, and fail on the same rows.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any, Final

from tools.benchmarks._column_batches import Batch
from tools.benchmarks._column_contenders import FAILED, Contender, Decoder, Evidence
from tools.benchmarks._column_objects import Objects, bytes_of
from tools.benchmarks._timing import ContenderError

REFERENCE: Final = "rows"


def proven_reference(contender: Contender, batch: Batch) -> tuple[Decoder, Evidence]:
    """The reference and its values. Raises ContenderError."""
    try:
        decoder = contender.prepare(batch)
        objects = decoder.decode(decoder.argument)
        _prove_written(batch, objects)
        return decoder, decoder.shown(objects)
    except ContenderError:
        raise
    except Exception as error:
        raise ContenderError(f"{type(error).__name__}: {error}") from error


def proven(contender: Contender, batch: Batch, expected: Evidence) -> Decoder:
    """The contender's decoder, after its values were found equal to the expected ones. Raises ContenderError."""
    try:
        decoder = contender.prepare(batch)
        shown = decoder.shown(decoder.decode(decoder.argument))
    except Exception as error:
        raise ContenderError(f"{type(error).__name__}: {error}") from error
    _prove_same(shown, expected)
    return decoder


def _prove_written(batch: Batch, objects: Objects) -> None:
    _prove_failed(objects.failed, sorted(batch.broken))
    rows = bytes_of(batch)
    keys = (key.RECORD_TYPE.to_bytes(2, "big") + key.encode(0) for key in objects.keys)
    _prove_bytes("key", rows.keys, keys)
    values = (
        data if row in batch.broken else None if value is None else _written(value, data)
        for row, (data, value) in enumerate(zip(rows.values, objects.values, strict=True))
    )
    _prove_bytes("value", rows.values, values)


def _written(value: Any, data: bytes | None) -> bytes | None:
    if data is None:
        return b""  # an object, although there was nothing to read
    written: bytes = value.encode(int.from_bytes(data[:2], "big"))
    return data[:2] + written


def _prove_bytes(what: str, read: Iterable[bytes | None], written: Iterable[bytes | None]) -> None:
    for row, (one, other) in enumerate(zip(read, written, strict=True)):
        if one != other:
            raise ContenderError(f"{what} of row {row}: reads {_hex(one)} and writes {_hex(other)}")


def _hex(data: bytes | None) -> str:
    return "null" if data is None else data.hex()


def _prove_same(shown: Evidence, expected: Evidence) -> None:
    if shown.keys() != expected.keys():
        raise ContenderError(f"gives {sorted(shown)} and not {sorted(expected)}")
    _prove_failed(shown[FAILED], expected[FAILED])
    for name, values in expected.items():
        if len(shown[name]) != len(values):
            raise ContenderError(f"{name} has {len(shown[name])} rows and not {len(values)}")
        for row, (one, other) in enumerate(zip(shown[name], values, strict=True)):
            if one != other:
                raise ContenderError(f"{name} of row {row} is {reprlib.repr(one)} and not {reprlib.repr(other)}")


def _prove_failed(failed: list[int], expected: list[int]) -> None:
    if failed != expected:
        raise ContenderError(f"fails on rows {reprlib.repr(failed)} and not on {reprlib.repr(expected)}")
