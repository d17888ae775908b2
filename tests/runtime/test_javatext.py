"""Malformed UTF-8 as Java reads it; the expected texts were printed by OpenJDK 17."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_records_runtime.text.java_text import decode_replacing

MALFORMED = {
    "80": 1,
    "c0 80": 2,
    "c2": 1,
    "e0 80 80": 3,
    "e2 82": 1,
    "e2": 1,
    "ed a0 80": 1,
    "ed a0 80 ed b0 80": 2,
    "ed a0": 1,
    "f0 80 80 80": 4,
    "f0 9f 98": 1,
    "f0 9f": 1,
    "f0": 1,
    "f4 90 80 80": 4,
    "f5 80": 2,
    "f8 88 80 80 80": 5,
    "fe ff": 2,
}
"""Bytes and how many U+FFFD they become."""


@pytest.mark.parametrize(("malformed", "count"), MALFORMED.items())
def test_replacements(malformed: str, count: int) -> None:
    raw = bytes.fromhex(malformed)
    assert decode_replacing(raw) == "\ufffd" * count
    assert decode_replacing(b"a" + raw + "€".encode()) == "a" + "\ufffd" * count + "€"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=400))
def test_well_formed_text_is_itself(text: str) -> None:
    assert decode_replacing(text.encode()) == text


@given(st.lists(st.sampled_from([b"a", "€😀".encode(), b"\xff", b"\xf0\x9f", b"\xed\xa0\x80"]), max_size=200))
def test_good_and_bad_in_turn(pieces: list[bytes]) -> None:
    wanted = "".join("€😀" if len(piece) == 7 else "a" if piece == b"a" else "\ufffd" for piece in pieces)
    assert decode_replacing(b"".join(pieces)) == wanted
