"""Which of Kafka's verdicts on a line of negative.jsonl.gz applies to this package."""

from __future__ import annotations

from typing import Any


def is_refused_since_4_4(verdict: dict[str, Any]) -> bool:
    """Whether Kafka refuses a count of tags that it read as zero before 4.4."""
    return not verdict["ok"] and verdict.get("detail", "").startswith("Invalid negative number of tagged fields")


def verdict(line: dict[str, Any]) -> dict[str, Any]:
    """The newest verdict, because our specs are the newest; but bytes that are refused only because of the limits of
    4.4 count as before these."""
    verdicts = [line, *line.get("later", ())]
    return next(each for each in reversed(verdicts) if not is_refused_since_4_4(each))
