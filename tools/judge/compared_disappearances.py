"""Compares the tables `disappearances` and `share_disappearances` with the calls that wrote the tombstones, and counts
how often they are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from kafka_records_tables.tables.declaration import RETENTION
from kafka_records_tables.tables.words.causes import of_text
from tools.judge.answers import Difference, Loaded, columns_of, differing

_WRONG: Final = 40
"""The factors by which a wrong retention is too long or too short. It must not make a certain answer wrong."""

_TOLD: Final = " told as "


def disappearances(loaded: Loaded) -> Iterator[Difference]:
    """Every tombstone must have a row. No certain row may be wrong, and no true cause may be ruled out, with the
    retention and timeouts of the brokers and, for the whole log, also with others."""
    history = loaded.history
    retention = history.header["offsets_retention_ms"]
    session = int(history.settings["group.consumer.session.timeout.ms"])
    yield from _compared(loaded, "disappearances", {"retention": retention, "session_timeout": session})
    if loaded.cut == max(history.cuts):
        wrong = retention * _WRONG if loaded.cut % 2 else max(retention // _WRONG, RETENTION.least_ms)
        options = {"retention": wrong, "session_timeout": 1}
        yield from _compared(loaded, "disappearances", options, is_noted=False)


def share_disappearances(loaded: Loaded) -> Iterator[Difference]:
    """The same for share state, if the history has no questions."""
    yield from _compared(loaded, "share_disappearances", {})


def _compared(loaded: Loaded, table: str, options: Mapping[str, int], *, is_noted: bool = True) -> Iterator[Difference]:
    history = loaded.history
    expected = {
        record["offset"]: history.why[record["offset"]]["why"]
        for record in history.records
        if "control" not in record and record["value"] is None and loaded.first <= record["offset"] <= loaded.cut
    }
    names = ("log_offset", "cause", "confidence", "possible_causes", "group_id")
    rows = list(columns_of(loaded.read(table, **options), *names))
    got = Counter(offset for offset, *_ in rows)
    yield from differing(table, f"tombstones, {options}", Counter(list(expected)), got)
    for offset, cause, confidence, possible, group in rows:
        true = expected.get(offset, "")
        is_told = true in of_text(cause)
        if (confidence == "high" and not is_told) or true not in possible:
            if true in ("expired", "offset_deleted") and group in loaded.unsubscribed:
                continue
            if offset in history.merged:
                loaded.untold("writes of one moment in one batch", None)
                continue
            if offset in history.smaller:
                loaded.untold("a topic that had more partitions", None)
                continue
            yield Difference(table, f"offset {offset}, {options}", true, (cause, confidence, possible))
        if is_noted:
            loaded.noted[f"{true}{_TOLD}{cause}, {confidence}"] += 1


def precision_and_recall(noted: Mapping[str, int]) -> Iterator[str]:
    """Lines about the counts of a table, for each cause: how often it was the only one in a row, and how often that was
    right; for how many of its tombstones it was the only cause, and for how many one of several."""
    told: Counter[str] = Counter()
    right: Counter[str] = Counter()
    among: Counter[str] = Counter()
    there: Counter[str] = Counter()
    sure: Counter[str] = Counter()
    for note, times in noted.items():
        true, _, rest = note.partition(_TOLD)
        cause, _, confidence = rest.rpartition(", ")
        there[true] += times
        told[cause] += times
        if cause == true:
            right[true] += times
            sure[true] += times * (confidence == "high")
        elif true in of_text(cause):
            among[true] += times
    for cause in sorted(there):
        precision = f"{right[cause] / told[cause]:.4f}" if told[cause] else "-"
        yield (
            f"{cause}: {there[cause]} tombstones, precision {precision}, recall {right[cause] / there[cause]:.4f}, "
            f"sure {sure[cause] / there[cause]:.4f}, one of several causes {among[cause] / there[cause]:.4f}"
        )
