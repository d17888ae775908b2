"""Determines which stored rows were in the log at a given time.

A snapshot contains rows that the log has lost since. A table about the state at a given time needs exactly the rows
that the log had then, because an additional row may be a value whose tombstone was cleaned away before it was read. A
table of events needs all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kafka_records_engine.sources._stored.stretches import StoredLog, Stretch, Survey

BEHIND_ALL: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class View:
    """A selection of stored rows, and the facts about the log for the context."""

    surveys: tuple[Survey, ...]
    """The surveys whose lost offsets to leave out."""
    log_start: int | None
    cleaned_up_to: int | None
    is_due: bool
    """Whether a survey is missing because a run was killed before it or could not read the whole log."""


def everything(log: StoredLog) -> View:
    """The view with all rows."""
    stretches = log.stretches
    start = stretches[0].log_start if stretches else None
    reach = max((*_reaches(stretches), *(each.cleaned_up_to for each in log.surveys)), default=BEHIND_ALL)
    return View((), start, _known(reach), False)


def as_of(log: StoredLog, cut: int) -> View:
    """The rows of the log as it was when it ended at the offset `cut` (exclusive).

    A cleaner that has cleaned a log up to some offset has removed only records superseded by records below that offset.
    So the log as a run found it is correct for every `cut` at or above that offset. The same holds for rows stored
    later, as long as none are missing. If rows are missing, only a later survey shows which older rows had been
    deleted.
    """
    stretches = log.stretches
    if not stretches:
        return View((), None, None, False)
    reaches = dict(zip(map(id, stretches), _reaches(stretches), strict=True))
    known = [each for each in log.surveys if each.cleaned_up_to <= cut]
    if known:
        base, log_start, surveyed = known[-1].cleaned_up_to, known[-1].log_start, known[-1].end
    else:
        first = [each for each in stretches if each.run == stretches[0].run]
        base, log_start, surveyed = max(reaches[id(each)] for each in first), stretches[0].log_start, first[-1].last + 1
    later = [each for each in log.surveys if each.cleaned_up_to > cut]
    with_gaps = [each for lowest, each in log.with_gaps() if surveyed <= each.first and lowest < cut]
    is_due = any(each.first < cut for each in log.unsurveyed())
    reach = base
    for each in with_gaps:
        looked = (survey.cleaned_up_to for survey in later if survey.end > each.last)
        reach = max(reach, next(looked, reaches[id(each)]))
    return View(tuple(known), log_start, _known(reach), is_due)


def _known(reach: int) -> int | None:
    return None if reach == BEHIND_ALL else reach


def _reaches(stretches: Sequence[Stretch]) -> list[int]:
    """For each stretch, the offset below which a cleaner may have removed records before the stretch was read.

    A killed run may not have stored it. The value of the next run is then used as an upper bound.
    """
    told: dict[str, int] = {}
    for each in stretches:
        if each.cleaned_up_to is not None:
            # The last entry of a run is the most accurate, because open transactions are known by then.
            told[each.run] = each.cleaned_up_to
    behind = BEHIND_ALL
    found: list[int] = []
    for each in reversed(stretches):
        behind = told.get(each.run, behind)
        found.append(behind)
    return found[::-1]
