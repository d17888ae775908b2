"""Converts objects of tables to bytes and back, so that a table can continue later with the objects it had in memory.

Pickles can refer to any function. The pickles read here may refer only to classes of tables, so that write access to a
checkpoint does not allow running code.
"""

from __future__ import annotations

import io
import pickle
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_tables.coordinator.records.named_records import value_of

_PACKAGES: Final = ("kafka_records_tables.coordinator.", "kafka_records_tables.tables.")


class UnexpectedContent(ValueError):
    """The given bytes do not contain objects of tables."""


def to_bytes(kept: object, outside: Mapping[str, object]) -> bytes:
    """Convert an object to bytes, with everything it refers to except the objects in `outside`, which are stored as
    names."""
    content = io.BytesIO()
    _Pickler(content, outside).dump(kept)
    return content.getvalue()


def from_bytes(content: bytes, outside: Mapping[str, object]) -> Any:
    """Rebuild the object. `outside` contains the objects that were stored as names. Raises UnexpectedContent."""
    return _Unpickler(io.BytesIO(content), outside).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, outside: Mapping[str, object]) -> None:
        super().__init__(file, protocol=5)
        self._outside = {id(each): name for name, each in outside.items()}

    def persistent_id(self, obj: object) -> str | None:
        return self._outside.get(id(obj))

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, np.ndarray):
            return _array, (obj.dtype.str, obj.tobytes(), obj.shape)
        if isinstance(obj, pa.RecordBatch):
            return _rows, (_stream(obj),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, outside: Mapping[str, object]) -> None:
        super().__init__(file)
        self._outside = outside

    def persistent_load(self, pid: str) -> object:
        return self._outside[pid]

    def find_class(self, module: str, name: str) -> Any:
        if (maker := _MAKERS.get((module, name))) is not None:
            return maker
        # Reject names that the module merely imports.
        found = super().find_class(module, name) if module.startswith(_PACKAGES) else None
        if isinstance(found, type) and found.__module__ == module:
            return found
        raise UnexpectedContent(f"the kept state of a table refers to {module}.{name}: give the query a new checkpoint")


def _stream(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _rows(content: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(content).read_next_batch()


def _array(kind: str, content: bytes, shape: tuple[int, ...]) -> Any:
    return np.frombuffer(content, np.dtype(kind)).reshape(shape).copy()


_MAKERS: Final = {(maker.__module__, maker.__name__): maker for maker in (deque, value_of, _array, _rows)}
