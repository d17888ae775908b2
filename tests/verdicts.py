"""Which of Kafka's verdicts on a line of negative.jsonl.gz judges this package."""

from __future__ import annotations

from typing import Any


def is_refused_since_4_4(verdict: dict[str, Any]) -> bool:
    """Whether Kafka refuses a count of tags that it took for none before 4.4."""
    return not verdict["ok"] and verdict.get("detail", "").startswith("Invalid negative number of tagged fields")


def verdict(line: dict[str, Any]) -> dict[str, Any]:
    """The newest, since our specs are the newest; but what only the limits of 4.4 refuse is read as before them."""
    verdicts = [line, *line.get("later", ())]
    return next(each for each in reversed(verdicts) if not is_refused_since_4_4(each))
