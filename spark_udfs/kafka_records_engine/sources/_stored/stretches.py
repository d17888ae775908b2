"""The offsets that each run stored, and the offsets that the log has lost since."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice, pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_records_engine.findings import DAMAGED_LOG, UNREACHABLE_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.files.source_error import NotReadable
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_engine.sources._stored.stored_names import (
    folder_of,
    gone_folder_of,
    records_files,
    survey_files,
)
from kafka_records_runtime.text.printable import printable

METADATA_KEY: Final = b"kafka_records.snapshot"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Consecutive rows of one log partition that one run stored. A file contains one or more stretches."""

    run: str
    """An identifier of the run, shared by all its stretches. A run reads the log as of one point in time."""
    source: str
    read_at_ms: int
    """The time at which the log itself was read. For a run that reads another snapshot, the time of that snapshot."""
    topic_id: str | None
    first: int
    """The offset of the first row."""
    last: int
    rows: int
    latest_ms: int
    """The latest timestamp of these rows."""
    asked_from: int | None
    """The offset from which rows were requested; None for the start of the log."""
    log_start: int | None
    cleaned_up_to: int | None
    """See `Context`; None if neither the source nor the end of the run determined it."""
    is_last: bool
    """Whether the run had stored all rows of the source when this stretch was written."""
    ended_at_ms: int | None
    """The time at which the log had no records beyond those of this run, as reported by a broker. None for files,
    because they may be an old copy."""
    quiet_until_ms: int | None
    """The time at which the log had no records beyond those before this stretch, as reported by a broker in a run that
    found no new records."""
    holes: tuple[int, ...] = ()
    """See `Context.holes`."""
    findings: tuple[dict[str, Any], ...] = ()
    """The damage found by the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A check of which stored offsets are no longer in the log. It is needed if the log may have lost records whose
    tombstones or markers were never read."""

    run: str
    source: str
    read_at_ms: int
    end: int
    """The offset after the last row stored at the time of the survey."""
    log_start: int | None
    cleaned_up_to: int
    path: str = ""

    def lost(self) -> tuple[INT64, INT64]:
        """The first and last offsets of the lost ranges, without those of earlier surveys. Raises OSError and
        ArrowInvalid for an unreadable file."""
        table = pq.read_table(self.path, page_checksum_verification=True)
        return table["first"].to_numpy(), table["last"].to_numpy()


SURVEY_SCHEMA: Final = pa.schema([("first", pa.int64()), ("last", pa.int64())])


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file with records. `trouble` says why it cannot be read; it then has no stretch."""

    first: int
    last: int
    path: str
    stretches: tuple[Stretch, ...] = ()
    trouble: str = ""

    def finding(self, topic: str, partition: int) -> Finding:
        """The finding about this file, which is unreadable."""
        consequence = f"offsets {self.first} to {self.last} are not read"
        return unreadable(self.path, self.trouble, consequence, topic, partition)


@dataclass(frozen=True, slots=True)
class StoredLog:
    """Everything a snapshot contains about one log partition."""

    topic: str
    partition: int
    files: tuple[StoredFile, ...]
    surveys: tuple[Survey, ...]
    findings: tuple[Finding, ...] = ()
    """Findings about unreadable surveys and missing files."""

    @property
    def stretches(self) -> list[Stretch]:
        """The stretches of all files, in order."""
        return [stretch for file in self.files for stretch in file.stretches]

    @property
    def end(self) -> int:
        """The offset after the last row; 0 if there is none."""
        return self.files[-1].last + 1 if self.files else 0

    @property
    def topic_id(self) -> str | None:
        """The id of the topic, if a source reported it."""
        return next((each.topic_id for each in reversed(self.stretches) if each.topic_id is not None), None)

    @property
    def log_start(self) -> int:
        """The log start at the last survey or, if there is none, at the first run."""
        known = [survey.log_start for survey in self.surveys if survey.log_start is not None]
        stretches = self.stretches
        return max(known, default=(stretches[0].log_start or 0) if stretches else 0)

    def unsurveyed(self) -> list[Stretch]:
        """The stretches that need a survey but have not had one.

        The log may have lost tombstones and markers before they were read. So a record that was never stored may have
        deleted an earlier stored record or ended its transaction. This cannot happen within the first run, which saw
        the log as of one point in time, with every value and its tombstone.
        """
        surveyed = self.surveys[-1].end if self.surveys else 0
        stretches = self.stretches
        if not stretches:
            return []
        behind = [each for each in stretches if each.run != stretches[0].run and each.first >= surveyed]
        gaps = {id(each) for _, each in self.with_gaps()}
        return [each for each in behind if id(each) in gaps or (each.log_start or 0) > self.log_start]

    def with_gaps(self) -> list[tuple[int, Stretch]]:
        """The stretches with missing offsets in or before them, each with a lower bound for the missing offsets."""
        found = []
        for before, each in pairwise([None, *self.stretches]):
            assert each is not None
            expected = (each.log_start or 0) if before is None else before.last + 1
            if each.first > expected:
                found.append((expected, each))
            elif each.rows != each.last - each.first + 1:
                found.append((each.first + 1, each))
        return found


def stored_log(root: str, topic: str, partition: int) -> StoredLog:
    """Everything a snapshot contains about a log partition. Raises LogSourceError for files written by a later version,
    and NotReadable for files that the user may not read."""
    while True:
        try:
            files = tuple(_stored_file(*each) for each in records_files(folder_of(root, topic, partition)))
            break
        except FileNotFoundError:
            continue  # another run has merged this file with others since the listing
    surveys: list[Survey] = []
    findings: list[Finding] = []
    for _, path in survey_files(gone_folder_of(root, topic, partition)):
        try:
            told = _told(path)
            surveys.append(Survey(**_members(Survey, {**told, "path": path})))
        except PermissionError:
            raise NotReadable(path) from None
        except (OSError, pa.ArrowInvalid, TypeError, KeyError, ValueError) as error:
            consequence = "records that were deleted may be shown"
            findings.append(unreadable(path, _reason(error), consequence, topic, partition))
    known = iter(read_on([stretch for file in files for stretch in file.stretches]))
    files = tuple(replace(file, stretches=tuple(islice(known, len(file.stretches)))) for file in files)
    findings += _missing(files, folder_of(root, topic, partition), topic, partition)
    return StoredLog(topic, partition, files, tuple(surveys), tuple(findings))


def _missing(files: Sequence[StoredFile], folder: str, topic: str, partition: int) -> list[Finding]:
    """The findings about stored records whose files are gone although a later run continued after them."""
    found = []
    for before, file in pairwise([None, *files]):
        assert file is not None
        asked = file.stretches[0].asked_from if file.stretches else None
        last = -1 if before is None else before.last
        if asked is not None and asked > last:
            what = f"records up to offset {file.first - 1} were stored, but no file has those after offset {last}"
            if last < 0:
                what = f"records before offset {file.first} were stored, but their files are missing"
            consequence = "they are not read: copy the files back"
            found.append(unreadable(folder, what, consequence, topic, partition))
    return found


def read_on(stretches: Sequence[Stretch], by: str | None = None) -> list[Stretch]:
    """The stretches without findings that a later run supersedes: those that a run made after its last row, if another
    run continued from there and reported all that still apply. `by` is the run that continues after all of them."""
    runs = [*(each.run for each in stretches[1:]), by]
    return [
        each if after is None or after == each.run else _up_to_last_row(each)
        for each, after in zip(stretches, runs, strict=False)
    ]


def _up_to_last_row(stretch: Stretch) -> Stretch:
    holes = tuple(hole for hole in stretch.holes if hole < stretch.last)
    findings = tuple(
        told
        for told in stretch.findings
        if (told["reason"] != UNREACHABLE_LOG if (at := told.get("base_offset")) is None else at <= stretch.last)
    )
    return replace(stretch, holes=holes, findings=findings)


def _stored_file(first: int, last: int, path: str) -> StoredFile:
    try:
        told = _told(path)
        stretches = tuple(_stretch(each) for each in told["stretches"])
    except FileNotFoundError:
        raise
    except PermissionError:
        raise NotReadable(path) from None
    except (OSError, pa.ArrowInvalid, TypeError, KeyError, ValueError) as error:
        return StoredFile(first, last, path, trouble=_reason(error))
    return StoredFile(first, last, path, stretches)


def _told(path: str) -> dict[str, Any]:
    with pq.ParquetFile(path) as file:
        metadata = file.metadata.metadata or {}
    text = metadata.get(METADATA_KEY)
    if text is None:
        raise KeyError("this was not written by kafka-records snapshot")
    told: dict[str, Any] = json.loads(text)
    if told["format"] > _FORMAT:
        raise LogSourceError(path, "this was written by a later version of kafka-records: read it with that version")
    return told


def _stretch(told: dict[str, Any]) -> Stretch:
    lists = {"holes": tuple(told["holes"]), "findings": tuple(told["findings"])}
    return Stretch(**_members(Stretch, {**told, **lists}))


def _members(kind: type, told: dict[str, Any]) -> dict[str, Any]:
    return {each.name: told[each.name] for each in fields(kind)}


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"cannot be read: {error.args[0]}"
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


def unreadable(path: str, what: str, consequence: str, topic: str, partition: int) -> Finding:
    """The finding about a file of a snapshot."""
    return Finding("damage", DAMAGED_LOG, what, consequence, topic, partition, file=printable(path))


def metadata_of(stretches: Sequence[Stretch]) -> dict[bytes, bytes]:
    """The metadata entries of a file with these stretches."""
    return _metadata({"stretches": [asdict(each) for each in stretches]})


def metadata_of_survey(survey: Survey) -> dict[bytes, bytes]:
    """The metadata entry of a survey file."""
    return _metadata(asdict(survey))


def _metadata(told: dict[str, Any]) -> dict[bytes, bytes]:
    return {METADATA_KEY: json.dumps({"format": _FORMAT, **told}).encode()}


# -- findings ----------------------------------------------------------------------------------------------------------


def told_of(finding: Finding) -> dict[str, Any]:
    """A finding as a JSON value, without record bytes."""
    told = asdict(finding)
    return {name: value for name, value in told.items() if value is not None and not name.startswith("raw_")}


def finding_of(told: dict[str, Any], read_at: str) -> Finding:
    """The finding in a JSON value. Its text says when the run took place."""
    found = Finding(**told)
    return replace(found, consequence=f"{found.consequence}; found when the snapshot was taken, {read_at}")


# -- what was lost -----------------------------------------------------------------------------------------------------


class Lost:
    """The offsets that are lost according to some surveys."""

    def __init__(self, surveys: Sequence[Survey]) -> None:
        ranges = [survey.lost() for survey in surveys]
        firsts = np.concatenate([np.empty(0, np.int64), *(first for first, _ in ranges)])
        order = np.argsort(firsts, kind="stable")
        self._firsts = firsts[order]
        self._lasts = np.concatenate([np.empty(0, np.int64), *(last for _, last in ranges)])[order]

    def __bool__(self) -> bool:
        return bool(len(self._firsts))

    def among(self, offsets: INT64) -> FLAGS:
        """Flags for the offsets that are lost."""
        at = np.searchsorted(self._firsts, offsets, side="right") - 1
        found: FLAGS = at >= 0
        if len(self._lasts):
            found &= offsets <= self._lasts[np.maximum(at, 0)]
        return found


def ranges_of(offsets: INT64, chosen: FLAGS) -> tuple[INT64, INT64]:
    """The first and last offset of each range of consecutive chosen offsets. The offsets are sorted."""
    edges = np.diff(np.concatenate([[0], chosen.astype(np.int8), [0]]))
    return offsets[np.flatnonzero(edges == 1)], offsets[np.flatnonzero(edges == -1) - 1]
