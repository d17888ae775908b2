"""The tables `disappearances` and `share_disappearances`, against the calls that wrote the tombstones, and how often
they are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from kafka_records_tables.tables.declaration import RETENTION
from kafka_records_tables.tables.words.causes import of_text
from tools.judge.answers import Difference, Loaded, columns_of, differing

_WRONG: Final = 40
"""How many times too long or too short a retention is that must not make a sure answer a wrong one."""

_TOLD: Final = " told as "


def disappearances(loaded: Loaded) -> Iterator[Difference]:
    """Every tombstone has a row. No row that is sure is wrong, and no true cause is ruled out, be the retention and the
    timeouts those of the brokers or, which is asked about the whole log, others."""
    history = loaded.history
    retention = history.header["offsets_retention_ms"]
    session = int(history.settings["group.consumer.session.timeout.ms"])
    yield from _compared(loaded, "disappearances", {"retention": retention, "session_timeout": session})
    if loaded.cut == max(history.cuts):
        wrong = retention * _WRONG if loaded.cut % 2 else max(retention // _WRONG, RETENTION.least_ms)
        options = {"retention": wrong, "session_timeout": 1}
        yield from _compared(loaded, "disappearances", options, is_noted=False)


def share_disappearances(loaded: Loaded) -> Iterator[Difference]:
    """The same of share state, if there is nothing to ask."""
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
    """Lines on what a table has noted here: for each cause how often it was told alone and how often that was
    right, and of its tombstones how many were told so, and how many as one of several causes."""
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
