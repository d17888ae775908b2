"""Findings as lines for people and programs. Imports only the standard library."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine.findings import members_of
from kafka_records_runtime.errors import plural

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding

MOST: Final = 50
"""The maximum number of findings of one kind that are printed on separate lines."""

_WITH_DIGITS: Final = re.compile(r"""(?<!\w)(?:'[^']*'|"[^"]*")(?!\w)|(?P<value>[\w.:+-]*\d[\w.:+-]*)""")
"""The parts in which merged notes may differ: numbers and times. A quoted name is not such a part, regardless of its
content."""
_MOST_VALUES: Final = 4
"""The maximum number of values to list for merged notes. If there are more, the line shows the smallest and the
largest."""
_MOST_RUNS: Final = 8
"""The maximum number of partition runs of a topic to list."""


def finding_lines(findings: Iterable[Finding], way_to_all: str, most: int = MOST) -> Iterator[str]:
    """One line per finding, in order. Notes begin with `note: `. Lines are not escaped. The same damage in several log
    partitions of a topic shares a line. So do notes in any log partitions that differ only in numbers and times: the
    line lists the log partitions and what differs. Of findings with the same severity and reason, only the first `most`
    are printed. A last line counts the others, followed by `way_to_all`."""
    seen: Counter[tuple[str, str]] = Counter()
    for same in _same_words(findings):
        finding = same[0]
        kind = (finding.severity, finding.reason)
        seen[kind] += 1
        if seen[kind] <= most:
            yield f"{'note: ' if finding.severity == 'note' else ''}{_of_all(same) if len(same) > 1 else finding}"
    for (severity, reason), count in seen.items():
        if count > most:
            start = "note: " if severity == "note" else ""
            yield f"{start}{plural(count - most, 'more finding')} of the kind {reason}: {way_to_all}"


def _same_words(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """The findings for each line. Findings that share a line are grouped at the position of the first one."""
    by_words: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        if finding.severity == "note":
            words = (tuple(_words_and_values(text)[0]) for text in (finding.what, finding.consequence))
            key: object = (finding.reason, finding.topic is None, *words)
        else:
            key = replace(finding, partition=None) if _is_of_log(finding) else number
        by_words.setdefault(key, []).append(finding)
    return by_words.values()


def _of_all(same: Sequence[Finding]) -> str:
    """The line for several findings: their log partitions, the numbers and times that differ, and the place of the
    first one."""
    # List values in the order of the log partitions named before them.
    same = sorted(same, key=lambda each: (each.topic or "", -1 if each.partition is None else each.partition))
    first = same[0]
    logs = sorted(
        {(each.topic, each.partition) for each in same if each.topic is not None and each.partition is not None}
    )
    told = f"{_merged([each.what for each in same])} ({_merged([each.consequence for each in same])})"
    if not _is_of_log(first):
        told += f"; first {first.place}"
    return f"{_shown(logs) if logs else plural(len(same), 'place')}: {told}"


def _is_of_log(finding: Finding) -> bool:
    return finding.file is None and finding.offset is None and finding.base_offset is None


def _shown(logs: Iterable[tuple[str, int]]) -> str:
    """Log partitions in words: `orders, partitions 0-2, 5; returns-1`."""
    texts = []
    for topic, of_topic in groupby(logs, lambda log: log[0]):
        numbers = [number for _, number in of_topic]
        # For consecutive numbers, the difference between a number and its index is constant.
        by_distance = groupby(enumerate(numbers), lambda numbered: numbered[1] - numbered[0])
        runs = [[number for _, number in run] for _, run in by_distance]
        shown = [f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:_MOST_RUNS]]
        left = sum(map(len, runs[_MOST_RUNS:]))
        more = f" and {left} more" if left else ""
        texts.append(f"{topic}-{shown[0]}" if len(numbers) == 1 else f"{topic}, partitions {', '.join(shown)}{more}")
    return "; ".join(texts)


def _words_and_values(text: str) -> tuple[list[str], list[str]]:
    """A text, split into the words around its numbers and times, and the numbers and times themselves. There is one
    more of the former."""
    words, values, start = [], [], 0
    for found in _WITH_DIGITS.finditer(text):
        if found["value"] is not None:
            words.append(text[start : found.start()])
            values.append(found["value"])
            start = found.end()
    return [*words, text[start:]], values


def _merged(texts: Sequence[str]) -> str:
    """Merge texts that differ only in numbers and times into one that lists them: `offset 54, 40, 187`."""
    apart = [_words_and_values(text) for text in texts]
    words = apart[0][0]
    values = zip(*(each for _, each in apart), strict=True)
    return words[0] + "".join(f"{_values(each)}{word}" for each, word in zip(values, words[1:], strict=True))


def _values(values: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(values))
    if len(distinct) <= _MOST_VALUES:
        return ", ".join(distinct)
    # Numbers with the same number of digits, and times, sort correctly as strings.
    ordered = sorted(distinct, key=lambda value: (len(value) if value.isdigit() else 0, value))
    return f"{ordered[0]} to {ordered[-1]}"


def finding_object(finding: Finding) -> dict[str, Any]:
    """A finding as a JSON object: its fields by name, with bytes in hex, and the result of `str()` as `message`."""
    plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in members_of(finding).items()}
    return {**plain, "message": str(finding)}


def finding_json(finding: Finding) -> str:
    """A finding as one line of ASCII JSON, including the line end."""
    return json.dumps(finding_object(finding), separators=(",", ":")) + "\n"
