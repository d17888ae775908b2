"""Archives of data directories. The first byte of an input chooses the ending of the name; the others are the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.files.discovery import find_logs
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.reading.segment_files import open_log, read_partition
from tests.log.archives import TARS, ZIPS, archived
from tests.log.logs import segment_cases
from tools.guided.target import Target, scratch

_DAY: Final = 1_790_000_000
_FORMS: Final = (*TARS, *ZIPS)


def read(data: bytes) -> None:
    """Find logs in a file and read them. Raises any error that a damaged file must not cause."""
    if data:
        read_file(*file_of(data))


def file_of(data: bytes) -> tuple[str, bytes]:
    """The name and the content of an input's file."""
    form = _FORMS[data[0] % len(_FORMS)]
    return form if form in ZIPS else f"data{form}", data[1:]


def read_file(name: str, content: bytes) -> None:
    """`read` of a file."""
    path = scratch() / name
    path.write_bytes(content)
    try:
        with suppress(LogSourceError):
            for log in find_logs([path]):
                with open_log(log) as opened:
                    for rows in read_partition(opened, on_finding=_ignore):
                        rows.validate(full=True)
    finally:
        path.unlink()


def _ignore(found: Finding) -> None:
    """Ignore findings: damaged files have damage."""


def _seeds() -> Iterator[bytes]:
    with TemporaryDirectory() as folder:
        log = Path(folder) / "data" / "t-0" / f"{0:020}.log"
        log.parent.mkdir(parents=True)
        log.write_bytes(bytes.fromhex(segment_cases()["segments"][0]["segment_hex"]))
        for path in (log, log.parent, log.parents[1]):
            os.utime(path, (_DAY, _DAY))
        for number, form in enumerate(_FORMS):
            yield bytes([number]) + archived(log.parents[1], Path(folder), form).read_bytes()


TARGET: Final = Target(lambda: list(_seeds()), read)
