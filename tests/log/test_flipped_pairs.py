"""Two flipped bits in the head of one batch: only that batch is lost, and it does not count as a torn append."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_records_engine.log.format.batches import MESSAGES_AT, RECORDS_AT
from kafka_records_engine.log.reading.segment_files import FoundLog
from tests.log.logs import write_log
from tests.log.test_flipped_sizes import FOLDER, Row, Segment, read, segments, sound

OFFSET_BITS = 64


class Place(NamedTuple):
    log: FoundLog
    file: Path
    segment: Segment


def places(folder: Path) -> dict[str, Place]:
    found = {}
    for number, (name, (base, data)) in enumerate(segments().items()):
        log = write_log(folder / str(number), {base: data})
        file = folder / str(number) / FOLDER / f"{base:020}.log"
        found[name] = Place(log, file, sound(log, base, data))
    return found


def without_offsets(rows: list[Row]) -> Counter[tuple[bytes | None, bytes | None]]:
    return Counter((key, value) for _, key, value in rows)


def check_pairs(folder: Path, seed: int, tries: int, zeros: int) -> None:
    logs = places(folder)
    chooses = random.Random(seed)
    entries = [(name, number) for name, place in logs.items() for number in range(len(place.segment.entries))]
    for _ in range(tries):
        name, number = chooses.choice(entries)
        log, file, segment = logs[name]
        entry = segment.entries[number]
        magic = segment.data[entry.start + 16]
        bits = chooses.sample(range(8 * (RECORDS_AT if magic == 2 else MESSAGES_AT[magic])), 2)
        data = bytearray(segment.data)
        for bit in bits:
            data[entry.start + bit // 8] ^= 1 << bit % 8
        file.write_bytes(bytes(data) + bytes(zeros))
        rows, findings = read(log)
        case = name, number, bits, [str(finding) for finding in findings]
        others = Counter(row for each in segment.entries if each is not entry for row in each.rows)
        assert not others - Counter(rows), case
        own = Counter(rows) - others
        if any(finding.severity == "damage" for finding in findings):
            assert not own - Counter(entry.rows), case
        else:
            # No CRC covers the offset of a batch: after the last one, another offset looks like a gap.
            assert without_offsets(list(own.elements())) == without_offsets(entry.rows), case
            assert own == Counter(entry.rows) or min(bits) < OFFSET_BITS, case


@pytest.mark.slow
@pytest.mark.parametrize("zeros", [0, 300])
def test_a_sample_of_pairs(tmp_path: Path, zeros: int) -> None:
    check_pairs(tmp_path, 422, 300, zeros)


@pytest.mark.matrix
@pytest.mark.parametrize("zeros", [0, 300])
@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_pairs(tmp_path: Path, seed: int, zeros: int) -> None:
    check_pairs(tmp_path, seed, 4000, zeros)
