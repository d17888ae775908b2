"""The parts that the targets have in common."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DATA: Final = ROOT / "tests" / "data"


@dataclass(frozen=True)
class Target:
    """Code that reads bytes.

    `seeds` returns the initial inputs, the same each time. `read` reads one input: it catches the errors that damaged
    bytes may cause, and raises for any other failure.
    """

    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[bytes], object]


_ENGINE: Final = "kafka_records_engine"
PACKAGES: Final[Mapping[str, Sequence[str]]] = {
    "codecs": ("kafka_records", "kafka_records_runtime"),
    "columns": (f"{_ENGINE}.columns", "kafka_records_runtime"),
    "segments": (f"{_ENGINE}.log",),
    "archives": (f"{_ENGINE}.log",),
    "saved": (f"{_ENGINE}.sources",),
    "requests": (f"{_ENGINE}.sources", "kafka_records_runtime"),
}
"""The targets, modules of this package, with the packages whose branches guide the fuzzer."""


def target(name: str) -> Target:
    """The target of that name."""
    found = import_module(f"tools.guided.{name}").TARGET
    assert isinstance(found, Target)
    return found


@cache
def scratch() -> Path:
    """A folder for the files that this process reads."""
    folder = TemporaryDirectory(prefix="guided-")
    atexit.register(folder.cleanup)
    return Path(folder.name)
