"""All threads of a process share plans and constants."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pyarrow as pa
import pytest

from kafka_records_engine.columns import decode_column
from kafka_records_engine.columns.arrow_arrays import Constant
from kafka_records_runtime.schema import FORMAT, FieldSchema, MessageSchema, StructSchema
from kafka_records_runtime.wire import walker


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let threads switch much more often than usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def fresh() -> MessageSchema:
    """A schema without a plan yet, whose version 0 is only constants."""
    fields = [FieldSchema("id", "id", "int32", (0, 1))]
    fields += [FieldSchema(f"text{place}", f"text{place}", "string", (1, 1), default="usual") for place in range(6)]
    return MessageSchema(FORMAT, "Fresh", (0, 1), None, (StructSchema("Fresh", tuple(fields)),))


@pytest.mark.usefixtures("hasty")
def test_many_threads_read_one_schema() -> None:
    random = Random(1)
    for _ in range(3):
        message = fresh()
        row = walker.encode(message, {"id": 5}, 0)
        (expected,) = decode_column(message, pa.array([row]), 0).values.to_pylist()
        sizes = [random.randint(1, 3_000) for _ in range(60)]

        def read(size: int, message: MessageSchema = message, row: bytes = row) -> pa.StructArray:
            return decode_column(message, pa.array([row] * size), 0).values

        with ThreadPoolExecutor(8) as pool:
            for size, values in zip(sizes, pool.map(read, sizes), strict=True):
                values.validate(full=True)
                assert values.to_pylist() == [expected] * size


def test_a_constant_that_another_thread_makes_shorter() -> None:
    """Another thread replaces the kept array between the check of its length and its use."""

    class Shrinking(Constant):
        """Replaces the kept array by a shorter one as soon as its length is read."""

        def __init__(self) -> None:
            super().__init__(pa.int32(), 7)
            self.reads = 0

        def __getattribute__(self, name: str) -> object:
            found = super().__getattribute__(name)
            if name == "_kept":
                self.reads += 1
                if self.reads > 1:
                    return found[:1]
            return found

    constant = Shrinking()
    constant._kept = pa.array([7] * 50, pa.int32())
    constant.reads = 0
    assert constant.times(40).to_pylist() == [7] * 40
    assert constant.reads == 1
