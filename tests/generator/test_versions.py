"""The version range as a value."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_records_codegen.spec.versions import MAX_VERSION, Versions

small_ranges = st.builds(Versions, st.integers(0, 12), st.integers(0, 12))


@pytest.mark.parametrize(
    ("text", "lowest", "highest"),
    [
        ("0", 0, 0),
        ("7", 7, 7),
        (" 1-3 ", 1, 3),
        ("0+", 0, MAX_VERSION),
        ("32767", 32767, 32767),
        ("007", 7, 7),
        ("2-2", 2, 2),
    ],
)
def test_parse(text: str, lowest: int, highest: int) -> None:
    assert Versions.parse(text, Versions.NONE) == Versions(lowest, highest)


@pytest.mark.parametrize("text", ["none", "3-1", " none "])
def test_parse_of_the_empty_range(text: str) -> None:
    assert Versions.parse(text, Versions.ALL) == Versions.NONE


@pytest.mark.parametrize("text", [None, "", "  ", "\t"])
def test_absent_text_gives_the_default(text: str | None) -> None:
    assert Versions.parse(text, Versions(4, 5)) == Versions(4, 5)


@pytest.mark.parametrize(
    "text", ["-1", "1-", "+", "1 - 2", "1,2", "None", "a", "1++", "1-2+", "0x1", "1.0", "\u0661", "9" * 5000]
)
def test_parse_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version range; write none, a number, A-B or A\\+"):
        Versions.parse(text, Versions.NONE)


@pytest.mark.parametrize("text", ["32768", "0-40000", "32768+"])
def test_parse_refuses_more_than_a_short(text: str) -> None:
    with pytest.raises(ValueError, match="is above 32767, the highest possible version"):
        Versions.parse(text, Versions.NONE)


@pytest.mark.parametrize(("lowest", "highest"), [(-1, 3), (0, 32768)])
def test_bounds_are_checked(lowest: int, highest: int) -> None:
    with pytest.raises(ValueError, match=f"versions must be between 0 and 32767, got {lowest}-{highest}"):
        Versions(lowest, highest)


@pytest.mark.parametrize("text", ["none", "0", "3", "1-4", "0+", "5+", "32767"])
def test_text_is_the_spelling_of_a_spec(text: str) -> None:
    assert str(Versions.parse(text, Versions.NONE)) == text


def test_value_semantics() -> None:
    assert Versions(3, 1) == Versions.NONE
    assert len({Versions(1, 2), Versions(1, 2), Versions.NONE, Versions(9, 0)}) == 2
    assert pickle.loads(pickle.dumps(Versions(1, 2))) == Versions(1, 2)


def test_pair() -> None:
    assert Versions(1, 2).pair == (1, 2)
    assert Versions.NONE.pair is None


def test_truth_and_openness() -> None:
    assert Versions(0, 0)
    assert not Versions.NONE
    assert Versions.NONE.is_empty
    assert Versions(2, MAX_VERSION).is_open
    assert not Versions(0, 2).is_open
    assert not Versions.NONE.is_open


def test_subtract_leaves_none_one_or_two_ranges() -> None:
    assert Versions(0, 5).subtract(Versions(2, 3)) == (Versions(0, 1), Versions(4, 5))
    assert Versions(0, 5).subtract(Versions(3, MAX_VERSION)) == (Versions(0, 2),)
    assert Versions(0, 5).subtract(Versions.NONE) == (Versions(0, 5),)
    assert Versions(2, 3).subtract(Versions.ALL) == ()
    assert Versions.NONE.subtract(Versions.ALL) == ()


@given(small_ranges, small_ranges)
def test_ranges_are_sets_of_versions(one: Versions, other: Versions) -> None:
    assert list(one) == [version for version in range(14) if one.contains(version)]
    assert len(one) == len(list(one))
    assert set(one.intersect(other)) == set(one) & set(other)
    assert one.contains_all(other) == (set(other) <= set(one))
    left = one.subtract(other)
    assert [version for part in left for version in part] == sorted(set(one) - set(other))
    assert all(left)
    assert Versions.parse(str(one), Versions.ALL) == one
