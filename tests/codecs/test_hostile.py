"""No input makes the time or memory of a generated class grow faster than the input's length. Work is counted, not
timed."""

from __future__ import annotations

import importlib
import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka_records import registry
from kafka_records_codegen.cli import main
from kafka_records_runtime.errors import CountTooLarge, DecodeError
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS, struct_layouts
from kafka_records_runtime.wire import primitives, walker
from tests.codecs.names import NAMES
from tools.hostile import BYTES_PER_BYTE
from tools.random_messages import random_message

COUNTS = (4, 8, 16)
TEXT = "xxxxxxxx"

FILLINGS: dict[str, Any] = {"bool": True, "float64": 1.5, "uuid": Uuid(bytes(16)), "string": TEXT}


def versions_of(cls: Any) -> list[int]:
    """The oldest and the newest version; for requests, of which there are many with the same template, only the
    newest."""
    return sorted({cls.VERSIONS[0], cls.VERSIONS[-1]})[-1 if ".rpc." in cls.__module__ else 0 :]


def shaped(schema: MessageSchema, version: int, name: str, count: int, *, depth: int, tags: int) -> dict[str, Any]:
    """A struct with all fields of `version`: `count` elements in the arrays at the level `depth`, one in all others."""
    values: dict[str, Any] = {}
    for layout in struct_layouts(schema, version)[name].fields:
        field = layout.field
        if not layout.present:
            continue
        one: Any = FILLINGS.get(field.base, 1 if field.base in primitives.INTEGERS else b"12345678")
        if field.is_struct:
            one = shaped(schema, version, field.base, count, depth=depth - 1, tags=tags)
        values[field.name] = (one,) * (count if depth == 0 else 1) if field.is_array else one
    if schema.is_flexible(version):
        known = max((field.tag for field in schema.struct(name).fields if field.tag is not None), default=-1)
        values[UNKNOWN_TAGS] = tuple((known + 1 + number, b"") for number in range(tags))
    return values


def depth_of(schema: MessageSchema, name: str, version: int) -> int:
    """How many levels of structs are below a struct."""
    below = [
        1 + depth_of(schema, layout.field.base, version)
        for layout in struct_layouts(schema, version)[name].fields
        if layout.present and layout.field.is_struct
    ]
    return max(below, default=0)


def padded_uvarint(out: bytearray, value: int) -> None:
    """An unsigned varint in five bytes, however few it needs."""
    out += bytes(value >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21))
    out.append(value >> 28)


def growing(cls: Any, version: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[bytes]]]:
    """Names and inputs that grow in only one respect (elements of one level, or tags), by some amount and by twice that
    amount."""
    schema: MessageSchema = cls.CODEC.schema
    name = schema.root.name
    shapes = [(f"arrays at level {depth}", depth, False) for depth in range(depth_of(schema, name, version) + 1)]
    if schema.is_flexible(version):
        shapes.append(("tags", -1, True))

    def made(depth: int, tags: bool) -> list[bytes]:
        return [
            walker.encode(schema, shaped(schema, version, name, count, depth=depth, tags=count if tags else 0), version)
            for count in COUNTS
        ]

    for what, depth, tags in shapes:
        inputs = made(depth, tags)
        if len(inputs[0]) == len(inputs[-1]):
            continue
        yield what, inputs
        yield f"{what}, cut", [data[:-1] for data in inputs]
        yield f"{what}, no UTF-8", [data.replace(TEXT.encode(), b"\xff" * len(TEXT)) for data in inputs]
        with monkeypatch.context() as patched:
            patched.setattr(primitives, "write_uvarint", padded_uvarint)
            long = made(depth, tags)
        if long != inputs:
            yield f"{what}, long varints", long


def work_of(read: Callable[[], Any]) -> int:
    """The number of calls of Python and C functions."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        with suppress(DecodeError):
            read()
    finally:
        sys.setprofile(before)
    return calls


def peak_of(read: Callable[[], Any]) -> int:
    """The peak number of bytes that `read` allocates."""
    tracemalloc.start()
    try:
        kept = read()
    except DecodeError as error:
        kept = error
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    del kept
    return peak


def readers(cls: Any, version: int, data: bytes) -> list[Callable[[], Any]]:
    return [lambda: cls.decode(data, version), lambda: cls.CODEC.decode_lenient(data, version, [])]


def warm(read: Callable[[], Any]) -> None:
    """Call `read` once, so that tables and plans that are kept exist."""
    with suppress(DecodeError):
        read()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_work_and_memory_grow_with_the_input(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = registry.message_class(name)
    for version in versions_of(cls):
        for what, inputs in growing(cls, version, monkeypatch):
            for reads in zip(*(readers(cls, version, data) for data in inputs), strict=True):
                for read in reads:
                    warm(read)
                small, middle, large = (work_of(read) for read in reads)
                assert large - middle <= 2.2 * (middle - small) + 50, (version, what)
                for read, data in zip(reads, inputs, strict=True):
                    # A second time, because Python itself sometimes allocates in the first.
                    peak = min(peak_of(read), peak_of(read))
                    assert peak <= 4_096 + BYTES_PER_BYTE * len(data), (version, what)


@pytest.mark.parametrize("name", NAMES)
def test_no_claim_is_believed(name: str) -> None:
    """Every length, count and size in a message is raised to its maximum. It must be refused at once, or be read with
    less work."""
    cls = registry.message_class(name)
    for version in versions_of(cls):
        data = random_message(cls, version, Random(name), plain=False).encode(version)
        claims = [
            step
            for step in walker.walk(cls.CODEC.schema, version, data)
            if step.type in ("length", "count", "tag count", "tag size", "tag")
        ]
        for step in claims[:: 1 + len(claims) // 20]:
            after = data[step.offset + step.length :]
            huge = [b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xff\xff\x03"]
            if not cls.CODEC.schema.is_flexible(version):
                huge = [b"\x7f" + b"\xff" * (step.length - 1), b"\x80" + bytes(step.length - 1)]
            for claim in huge:
                hostile = data[: step.offset] + claim + after
                for read in readers(cls, version, hostile):
                    warm(read)
                    assert peak_of(read) <= 16_384 + BYTES_PER_BYTE * len(hostile), (version, step, claim)


# -- elements without bytes ------------------------------------------------------------------------

NOTHINGS = {
    "type": "data",
    "name": "Nothings",
    "validVersions": "0-1",
    "flexibleVersions": "none",
    "fields": [
        {
            "name": "Outer",
            "type": "[]Outer",
            "versions": "0+",
            "fields": [
                {
                    "name": "Inner",
                    "type": "[]Nothing",
                    "versions": "0+",
                    "fields": [{"name": "Later", "type": "int32", "versions": "1+"}],
                }
            ],
        }
    ],
}


@pytest.fixture(scope="module")
def nothings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A generated class whose innermost elements have no bytes in version 0."""
    home = tmp_path_factory.mktemp("nothings")
    specs = home / "specs" / "all"
    specs.mkdir(parents=True)
    Path(specs, "Nothings.json").write_text(json.dumps(NOTHINGS), encoding="utf-8")
    out = home / "nothing_messages"
    assert main(["generate", "--specs", str(specs.parent), "--out", str(out), "--package", out.name]) == 0
    sys.path.insert(0, str(home))
    yield importlib.import_module("nothing_messages.registry").message_class("Nothings")
    sys.path.remove(str(home))


def test_elements_without_bytes_are_read(nothings: Any) -> None:
    raw = bytes.fromhex("00000002 00000004 00000000")
    assert [len(outer.inner) for outer in nothings.decode(raw, 0).outer] == [4, 0]


def test_elements_without_bytes_cost_no_more_than_the_input(nothings: Any) -> None:
    for count, claim in ((1, 2**31 - 1), (1, 5), (2_000, 3_000), (2_000, 8_000), (2_000, 1)):
        hostile = count.to_bytes(4, "big") + claim.to_bytes(4, "big") * count
        for read in readers(nothings, 0, hostile):
            warm(read)
            assert work_of(read) <= 1_000 + 8 * len(hostile)
            assert peak_of(read) <= 16_384 + BYTES_PER_BYTE * len(hostile)


def test_elements_without_bytes_are_bounded_by_the_input_as_a_whole(nothings: Any) -> None:
    hostile = (20_000).to_bytes(4, "big") + (30_000).to_bytes(4, "big") * 20_000
    for read in readers(nothings, 0, hostile):
        with pytest.raises(CountTooLarge) as caught:
            read()
        assert caught.value.path == "outer[2].inner"
