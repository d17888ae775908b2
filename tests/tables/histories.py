"""The histories of tests/data: logs that Kafka's coordinator classes wrote, and what those classes answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tools.judge.decoded_once import DecodedOnce
from tools.judge.histories import History, Question, raw_rows

__all__ = ["NAMES", "SHARE_NAMES", "History", "Question", "decoded", "history", "raw_rows", "sampled"]

FOLDER = Path(__file__).resolve().parents[1] / "data" / "histories"

NAMES = sorted(path.name.removesuffix(".log.jsonl.gz") for path in FOLDER.glob("????.log.jsonl.gz"))
"""All histories of the offsets topic."""

SHARE_NAMES = sorted(path.name.removesuffix(".log.jsonl.gz") for path in FOLDER.glob("????-share.log.jsonl.gz"))
"""All histories of the topic of share state, each beside one of the offsets topic."""


def sampled(names: Sequence[str], step: int) -> list[Any]:
    """All of them, to be a parameter: one of `step` in `make test`, the others in `make matrix`."""
    return [pytest.param(name, marks=() if at % step == 0 else pytest.mark.matrix) for at, name in enumerate(names)]


@cache
def history(name: str) -> History:
    """The history with that name, read once."""
    return History(FOLDER, name)


@cache
def decoded(name: str) -> DecodedOnce:
    """Its records, decoded once for all tables and cuts: that is half of the work."""
    return DecodedOnce(history(name).rows)
