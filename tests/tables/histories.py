"""The histories of tests/data: logs that Kafka's coordinator classes wrote, and the answers of these classes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from kafka_records_engine.findings import OTHER_RETENTION, OUTSIDE_LOG, UNMADE_CHECKS
from tools.judge.decoded_once import DecodedOnce
from tools.judge.histories import History, Question, raw_rows

__all__ = ["NAMES", "SHARE_NAMES", "History", "Question", "decoded", "history", "raw_rows"]

FOLDER = Path(__file__).resolve().parents[1] / "data" / "histories"

NAMES = sorted(path.name.removesuffix(".log.jsonl.gz") for path in FOLDER.glob("????.log.jsonl.gz"))
"""All histories of the offsets topic."""

SHARE_NAMES = sorted(path.name.removesuffix(".log.jsonl.gz") for path in FOLDER.glob("????-share.log.jsonl.gz"))
"""All histories of the topic of share state, each with one of the offsets topic."""


@cache
def history(name: str) -> History:
    """The history with that name, read once."""
    return History(FOLDER, name)


@cache
def decoded(name: str) -> DecodedOnce:
    """The records of a history, decoded once for all tables and cuts, because decoding is half of the work."""
    return DecodedOnce(history(name).rows)


_USUAL_RETENTION_MS: Final = 7 * 24 * 60 * 60 * 1000


def may_be_noted(name: str, options: Mapping[str, Any]) -> set[str]:
    """The reasons of findings that are allowed for a table with these options over a history."""
    kept_for = history(name).header.get("offsets_retention_ms", _USUAL_RETENTION_MS)
    is_longer = options.get("retention", _USUAL_RETENTION_MS) > kept_for
    return {UNMADE_CHECKS, OUTSIDE_LOG, *([OTHER_RETENTION] if is_longer else [])}
