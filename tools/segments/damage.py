"""Damages a log that was written without damage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from kafka_records_engine.log.format.batches import RECORDS_AT
from tools.segments.partition import Place
from tools.segments.plan import Plan, PlanError

_OF_BATCHES: Final = ("crc", "size", "offset")
_ZEROS: Final = 4096
_SIZE_AT: Final = 10
"""The third byte of the size. Flipping a bit of it makes the batch 8 KiB longer or shorter."""
_OFFSET_AT: Final = 2
"""The third byte of the base offset. Flipping a bit of it moves the offset by 2^40."""


@dataclass(frozen=True)
class Damage:
    """One piece of damage, and the damaged batch. The zeros of `zeros` follow that batch."""

    kind: str
    file: str
    position: int
    """The byte of the file at which the batch starts."""
    base_offset: int
    records: int


def do_damage(plan: Plan, places: Sequence[Sequence[Place]]) -> list[Damage]:
    """Do the damage that `plan.damage` requests, to batches chosen among `places`, which lists those of each partition.

    No batch is damaged twice. The first and the last batch of each partition, and control batches, are not damaged.
    Raises PlanError if there are not enough other batches.
    """
    if not any(plan.damage.values()):
        return []
    random = np.random.default_rng([plan.seed, 1 << 31])
    inner = [place for partition in places for place in partition[1:-1] if not place.is_control]
    wanted = [kind for kind in _OF_BATCHES for _ in range(plan.damage.get(kind, 0))]
    chosen = [inner[at] for at in _some(random, len(wanted), len(inner), "batches")]
    done = [_broken(kind, place, random) for kind, place in zip(wanted, chosen, strict=True)]
    tails = [partition[-1] for partition in places if partition]
    wanted = [kind for kind in ("truncated", "zeros") for _ in range(plan.damage.get(kind, 0))]
    chosen = [tails[at] for at in _some(random, len(wanted), len(tails), "partitions")]
    return done + [_tail(kind, place) for kind, place in zip(wanted, chosen, strict=True)]


def _some(random: np.random.Generator, wanted: int, there: int, what: str) -> Iterable[int]:
    if wanted > there:
        raise PlanError(f"{wanted} {what} were to be damaged and there are only {there}: ask for less damage")
    numbers: list[int] = random.choice(there, wanted, replace=False).tolist()
    return numbers


def _broken(kind: str, place: Place, random: np.random.Generator) -> Damage:
    at = {
        "crc": int(random.integers(RECORDS_AT, place.size)),
        "size": _SIZE_AT,
        "offset": _OFFSET_AT,
    }[kind]
    with Path(place.file).open("r+b") as file:
        file.seek(place.position + at)
        (byte,) = file.read(1)
        file.seek(place.position + at)
        file.write(bytes([byte ^ 0x20]))
    return _damage(kind, place)


def _tail(kind: str, place: Place) -> Damage:
    with Path(place.file).open("r+b") as file:
        if kind == "zeros":
            file.seek(0, 2)
            file.write(bytes(_ZEROS))
        else:
            file.truncate(place.position + place.size // 2)
    return _damage(kind, place)


def _damage(kind: str, place: Place) -> Damage:
    return Damage(kind, place.file, place.position, place.base_offset, place.records)
