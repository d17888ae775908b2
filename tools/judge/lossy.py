"""Logs that have lost records, because of retention by time, a bug of a cleaner or an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from tools.judge.histories import History, write_log

LOSSY: Final = "lossy"
"""The suffix of the name of a history that has lost records."""

_Record = Mapping[str, Any]


def with_losses(history: History, chance: Random) -> History:
    """The log without some of its records, written as a separate history.

    Its only question is whether a coordinator loads it, because only that is compared.
    """
    is_lost = chance.choice([_head, _some, _tombstones, _records_of_a_type])(history, chance)
    name = f"{history.name}-{LOSSY}"
    *_, asked = history.header["questions"]
    header = history.header | {"history": name, "questions": [asked | {"is_loading_alone": True}]}
    left = [record for record in history.records if "control" in record or not is_lost(record)]
    write_log(history.folder, header, left)
    return History(history.folder, name)


def _head(history: History, chance: Random) -> Callable[[_Record], bool]:
    first = chance.choice(history.records)["offset"]
    return lambda record: bool(record["offset"] < first)


def _some(history: History, chance: Random) -> Callable[[_Record], bool]:
    share = chance.choice([0.02, 0.1, 0.4])
    return lambda record: chance.random() < share


def _tombstones(history: History, chance: Random) -> Callable[[_Record], bool]:
    share = chance.choice([0.2, 0.5])
    return lambda record: record["value"] is None and chance.random() < share


def _records_of_a_type(history: History, chance: Random) -> Callable[[_Record], bool]:
    share = chance.choice([0.3, 1])
    lost = chance.choice([record["key"][:4] for record in history.records if "control" not in record])
    return lambda record: record["key"][:4] == lost and chance.random() < share
