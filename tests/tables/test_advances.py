"""How offsets moved, in lots of any size, compared with the same rules commit by commit."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_records_tables.coordinator.offsets.advances import NONE, Advances, part_ms
from kafka_records_tables.coordinator.offsets.commit_steps import Steps

Step = dict[str, Any]
KEYS = [("a", "t", 0), ("a", "t", 1), ("b", "t", 0), ("b", "u", 7)]
IDS = ["x", "y"]


def random_steps(chance: Random, count: int) -> list[Step]:
    """Random steps in the order in which they took effect. Some took effect at a marker, with others of their
    transaction."""
    found: list[Step] = []
    at = ms = 0
    while len(found) < count:
        ms += chance.choice([0, 1, 50, 400])
        if chance.random() < 0.2:
            places = [at + n for n in range(chance.randrange(1, 4))]
            at = places[-1] + 1 + chance.randrange(2)
            # Other steps may take effect directly in the meantime.
            marker = at + chance.randrange(3)
            plain = list(range(places[-1] + 1, marker))
            found += [random_step(chance, place, place, ms) for place in plain]
            found += [random_step(chance, place, marker, ms) | {"is_value": True} for place in places]
            at = marker + 1
        else:
            found.append(random_step(chance, at, at, ms))
            at += 1
    return found


def random_step(chance: Random, log_offset: int, counted_at: int, ms: int) -> Step:
    is_value = chance.random() < 0.9
    return {
        "key": chance.randrange(len(KEYS)),
        "offset": chance.choice([chance.randrange(6), ms // 100]),
        "is_value": is_value,
        "id": chance.choice([0, 0, 1]) if is_value and chance.random() < 0.15 else -1,
        "log_offset": log_offset,
        "counted_at": counted_at,
        "ms": ms + 10**6,
    }


def as_steps(found: list[Step]) -> Steps:
    def vector(name: str) -> Any:
        return np.array([each[name] for each in found], np.int64)

    groups, topics, partitions = zip(*KEYS, strict=True)
    keys = [pa.array(groups), pa.array(topics), pa.array(partitions, pa.int32())]
    return Steps(
        keys=pa.RecordBatch.from_arrays(keys, names=["group_id", "topic", "partition"]),
        ids=pa.array(IDS),
        key=vector("key"),
        topic_id=vector("id"),
        is_value=np.array([each["is_value"] for each in found]),
        offset=vector("offset"),
        commit_timestamp_ms=vector("ms"),
        producer_id=vector("key"),
        is_transactional=np.zeros(len(found), np.bool_),
        log_offset=vector("log_offset"),
        counted_at=vector("counted_at"),
    )


def plain(found: list[Step]) -> dict[tuple[Any, ...], Step]:
    """The last step of each key, and all of its advances."""
    state: dict[int, Step] = {}
    in_order = sorted(found, key=lambda each: (each["counted_at"], each["log_offset"]))
    for place, each in enumerate(in_order):
        same_place = [other for other in in_order[place + 1 :] if other["counted_at"] == each["counted_at"]]
        if any(other["key"] == each["key"] for other in same_place):
            continue
        known = state.setdefault(each["key"], {"log_offset": -1, "is_value": False, "commits": 0, "advances": []})
        if each["log_offset"] < known["log_offset"]:
            continue
        known["log_offset"] = each["log_offset"]
        if not each["is_value"]:
            known |= {"is_value": False, "id": -1}
            continue
        identity = each["id"] if each["id"] >= 0 else known.get("id", -1)
        is_other = known.get("id", -1) >= 0 and identity != known["id"]
        is_fresh = not known["is_value"] or is_other
        known["commits"] += 1
        before = None if is_fresh else (known["changed"], known["offset"])
        if is_fresh:
            known |= {"peak": each["offset"], "fell": None}
        elif each["offset"] < known["offset"]:
            known["fell"] = (each["ms"], known["peak"])
        if is_fresh or each["offset"] != known["offset"]:
            known["changed"] = each["ms"]
            known["advances"].append((each["ms"], each["offset"], *(before or (NONE, NONE))))
        known |= {"is_value": True, "offset": each["offset"], "ms": each["ms"], "id": identity, "named": each["id"]}
        known["peak"] = max(known["peak"], each["offset"])
    return {KEYS[key]: known for key, known in state.items()}


@pytest.mark.parametrize("seed", range(40))
def test_lots_of_any_size(seed: int) -> None:
    chance, window = Random(seed), 4096 << 4 * (seed % 2)
    found = random_steps(chance, 300)
    advances = Advances(window)
    at = 0
    while at < len(found):
        # Steps that took effect at one marker come together.
        until = at + chance.choice([1, 3, 20, 60])
        while until < len(found) and found[until]["counted_at"] <= max(each["counted_at"] for each in found[at:until]):
            until += 1
        advances.add(as_steps(found[at:until]))
        at = until
    assert advances.keys is not None
    expected = plain(found)
    latest, first = max(each["ms"] for each in found), min(each["ms"] for each in found)
    for number, key in enumerate(zip(*(column.to_pylist() for column in advances.keys.columns), strict=True)):
        state = {name: int(vector[number]) for name, vector in advances.state.items()}
        if key not in expected:
            assert state["log_offset"] == -1
            continue
        known = expected[key]
        assert (state["is_value"], state["commits"]) == (known["is_value"], known["commits"])
        assert state["log_offset"] == known["log_offset"]
        if known["is_value"]:
            told = [state[name] for name in ("offset", "commit_ms", "changed_ms", "peak", "topic_id")]
            assert told == [known[name] for name in ("offset", "ms", "changed", "peak", "named")]
            assert (state["fell_ms"], state["fell_from"]) == (known["fell"] or (NONE, NONE))
        rows = advances.advances["key"] == number
        kept = list(zip(*(advances.advances[name][rows].tolist() for name in list(advances.advances)[1:]), strict=True))
        whole = known["advances"]
        assert set(kept) <= set(whole)
        assert kept[-4:] == whole[-4:]
        pauses = sorted((each[0] - each[2] for each in whole if each[2] != NONE), reverse=True)
        assert sorted((each[0] - each[2] for each in kept if each[2] != NONE), reverse=True)[:4] == pauses[:4]
        width = part_ms(window, latest - first)
        of_parts = {each[0] // width: each for each in whole if each[0] // width > latest // width - 6}
        assert set(of_parts.values()) <= set(kept)
        assert len(kept) <= 20


def test_parts_of_the_window() -> None:
    assert part_ms(600_000, 10**9) == 131_072
    assert part_ms(600_000, 320_000) == 16_384
    assert part_ms(1000, 0) == part_ms(1, 5) == 1
