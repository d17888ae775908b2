"""Generates the package of examples/own_specs under any name; its topic `ledger` has metadata framing. Also makes its
records."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.tree import write
from kafka_records_runtime.records.framing import in_frame
from tests.spark.jvm.made_records import Raw
from tools.hostile import mutated
from tools.random_messages import random_message

SPECS: Final = Path(__file__).resolve().parents[1] / "examples" / "own_specs" / "message_specs"

WRITTEN: Final = Path(__file__).resolve().parent / "data" / "kafka" / "metadata-records.jsonl"
"""Values of a controller's metadata log, with what Kafka's dump tool prints."""

TRANSFER, CORRECTION = 0, 200
"""The api keys. The second takes two bytes."""

FRAMES: Final[tuple[tuple[bytes | None, bytes | None, str, int | None, str], ...]] = (
    (b"", b"\x01\x00\x00", "UnexpectedKey", None, "the record has a key of 0 bytes, but metadata records have no key"),
    (b"k", None, "UnexpectedKey", None, "the record has a key of 1 byte, but metadata records have no key"),
    (None, None, "NullValue", None, "the record has no value"),
    (None, b"", "TruncatedFrame", 0, "the value has 0 bytes: the frame version at byte 0 is cut off"),
    (None, b"\x81", "TruncatedFrame", 0, "the value has 1 byte: the frame version at byte 0 is cut off"),
    (
        None,
        b"\x00\x00\x00",
        "UnknownFrameVersion",
        0,
        "the value has the frame version 0 at byte 0, but only version 1 is known",
    ),
    (
        None,
        b"\xac\x02",
        "UnknownFrameVersion",
        0,
        "the value has the frame version 300 at byte 0, but only version 1 is known",
    ),
    (None, b"\x01", "TruncatedFrame", 1, "the value has 1 byte: the api key at byte 1 is cut off"),
    (None, b"\x01\xc8", "TruncatedFrame", 1, "the value has 2 bytes: the api key at byte 1 is cut off"),
    (
        None,
        b"\x01\xff\xff\xff\xff\xff\x01\x00",
        "InvalidFrameNumber",
        1,
        "the api key at byte 1 of the value has more than 5 bytes",
    ),
    (
        None,
        b"\x01\x80\x80\x02\x00",
        "InvalidFrameNumber",
        1,
        "the api key at byte 1 of the value is 32768, more than the limit of 32767",
    ),
    (
        None,
        b"\x01\x81\x80\x80\x80\x10\x00",
        "InvalidFrameNumber",
        1,
        "the api key at byte 1 of the value is 4294967297, more than the limit of 32767",
    ),
    (None, b"\x01\x63\x00", "UnknownApiKey", 1, "no record of this topic has the api key 99, at byte 1 of the value"),
    (None, b"\x81\x00\x63", "UnknownApiKey", 2, "no record of this topic has the api key 99, at byte 2 of the value"),
    (None, b"\x01\x00", "TruncatedFrame", 2, "the value has 2 bytes: the version at byte 2 is cut off"),
    (None, b"\x01\xc8\x01\x80", "TruncatedFrame", 3, "the value has 4 bytes: the version at byte 3 is cut off"),
    (
        None,
        b"\x01\x00\xff\xff\x03\x00",
        "InvalidFrameNumber",
        2,
        "the version at byte 2 of the value is 65535, more than the limit of 32767",
    ),
)
"""Key and value of records that do not begin as metadata records do: the name of the error, the byte, and its text."""


@contextmanager
def ledger_package(home: Path, name: str) -> Iterator[str]:
    """Generate the package as `home/name`, and put `home` on the path."""
    write(home / name, generate(load(SPECS), name))
    with on_path(home):
        yield name


@contextmanager
def on_path(home: Path) -> Iterator[None]:
    """Make packages in `home` importable."""
    sys.path.insert(0, str(home))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(home))


def ledger_records(package: str, count: int, seed: int) -> list[Raw]:
    """Records of `ledger`: valid, damaged, of unknown types and versions, not framed, and markers."""
    random = Random(f"ledger {seed}")
    made = [Raw(key, value) for key, value, *_ in FRAMES]
    while len(made) < count:
        whole = _whole(package, random)
        kind = random.random()
        if kind < 0.4:
            made.append(Raw(None, whole))
        elif kind < 0.8:
            made.append(Raw(None, mutated(whole, random)))
        elif kind < 0.85:
            made.append(Raw(None, whole + random.randbytes(random.randint(1, 3))))
        elif kind < 0.9:
            made.append(Raw(None, whole[: random.randint(0, len(whole))]))
        elif kind < 0.95:
            made.append(Raw(None, in_frame(random.choice((0, 1, 199, 200, 9000)), random.randint(0, 300), whole[3:])))
        else:
            key, value, *_ = random.choice(FRAMES)
            made.append(Raw(key, value, random.choice((None, "commit"))))
    random.shuffle(made)
    return made


def _whole(package: str, random: Random) -> bytes:
    module, name = random.choice((("transfer_record", "TransferRecord"), ("correction_record", "CorrectionRecord")))
    cls: Any = getattr(importlib.import_module(f"{package}.ledger.{module}"), name)
    version = random.choice(cls.VERSIONS)
    return in_frame(cls.API_KEY, version, random_message(cls, version, random, plain=False).encode(version))
