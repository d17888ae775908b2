"""Inputs that reach new branches, in a readable form: tests/data/vectors/fuzzed-*.jsonl.gz."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tools.guided import archives, codecs, columns, saved, segments
from tools.guided.target import DATA

MESSAGES: Final = DATA / "vectors" / "fuzzed-messages.jsonl.gz"
FILES: Final = DATA / "vectors" / "fuzzed-files.jsonl.gz"
FUNCTIONS: Final = DATA / "vectors" / "fuzzed-functions.jsonl.gz"
"""The file of tools.guided.jvm."""
_LARGEST: Final = 3000
_MOST: Final[Mapping[str, int]] = {"codecs": 400, "columns": 120, "segments": 120, "archives": 60, "saved": 60}


def write(corpus: Path) -> None:
    """Write the smallest inputs of each target. `corpus` has a folder for each target."""
    messages = [codecs.described(data) for data in smallest(corpus / "codecs", _MOST["codecs"])]
    messages += [line for data in smallest(corpus / "columns", _MOST["columns"]) for line in columns.described(data)]
    pack(MESSAGES, [*{str(line): line for line in messages}.values()])
    files = [("segment.log", segments.file_of(data)) for data in smallest(corpus / "segments", _MOST["segments"])]
    files += [archives.file_of(data) for data in smallest(corpus / "archives", _MOST["archives"])]
    files += [saved.file_of(data) for data in smallest(corpus / "saved", _MOST["saved"])]
    pack(FILES, [{"file": name, "hex": data.hex()} for name, data in files])


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of one of the files."""
    with gzip.open(path, "rt", encoding="utf-8") as packed:
        yield from map(json.loads, packed)


def smallest(corpus: Path, most: int) -> list[bytes]:
    """Up to `most` of the inputs that the fuzzer found, without the seeds, from short to long."""
    found = {each.read_bytes() for each in corpus.iterdir() if not each.name.startswith("seed-")}
    fitting = sorted((each for each in found if 1 < len(each) <= _LARGEST), key=lambda each: (len(each), each))
    return fitting[:: max(len(fitting) // most, 1)][:most]


def pack(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the lines of one of the files."""
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
