"""Generates a package under any name from the specs in tests/data/specs/acme, which use the whole spec language."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.tree import write

SPECS = Path(__file__).resolve().parent / "data" / "specs" / "acme"


@contextmanager
def acme_package(home: Path, name: str) -> Iterator[Any]:
    """Generate the package as `home/name`, and put `home` on the path. Yields its registry."""
    write(home / name, generate(load(SPECS), name))
    sys.path.insert(0, str(home))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(f"{name}.registry")
    finally:
        sys.path.remove(str(home))
