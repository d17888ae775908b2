"""Finds the data directories of brokers among the paths of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_META: Final = "meta.properties"
"""A broker writes this file into each of its data directories (`MetaPropertiesEnsemble`)."""
_CLUSTER: Final = "cluster.id="


def data_directories(arguments: Iterable[str]) -> Iterator[Path]:
    """The data directories on this machine to which the arguments refer."""
    for argument in arguments:
        directory = Path(argument)
        if (directory / _META).is_file():
            yield directory


def cluster_id_of(arguments: Iterable[str]) -> str | None:
    """The cluster id in the data directories; None if there is none, or if the directories belong to several
    clusters."""
    found: set[str] = set()
    for directory in data_directories(arguments):
        try:
            text = (directory / _META).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found.update(line[len(_CLUSTER) :].strip() for line in text.splitlines() if line.startswith(_CLUSTER))
    return found.pop() if len(found) == 1 else None
