"""The histories of tests/data: logs that Kafka's coordinator classes wrote, and what those classes answer."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tools.judge.decoded_once import DecodedOnce
from tools.judge.histories import History, Question, raw_rows

__all__ = ["NAMES", "SHARE_NAMES", "History", "Question", "decoded", "history", "raw_rows"]

FOLDER = Path(__file__).resolve().parents[1] / "data" / "histories"

NAMES = sorted(path.name.removesuffix(".log.jsonl.gz") for path in FOLDER.glob("????.log.jsonl.gz"))
"""All histories of the offsets topic."""

SHARE_NAMES = sorted(path.name.removesuffix(".log.jsonl.gz") for path in FOLDER.glob("????-share.log.jsonl.gz"))
"""All histories of the topic of share state, each beside one of the offsets topic."""


@cache
def history(name: str) -> History:
    """The history with that name, read once."""
    return History(FOLDER, name)


@cache
def decoded(name: str) -> DecodedOnce:
    """Its records, decoded once for all tables and cuts: that is half of the work."""
    return DecodedOnce(history(name).rows)
