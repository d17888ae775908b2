"""Which known name was meant by an unknown one."""

from __future__ import annotations

import pytest

from kafka_records_runtime.text.close_names import close_name, close_names


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("curent_offsets", "current_offsets"),
        ("CurrentOffsets", "current_offsets"),
        ("grup", "group_id"),
        ("offsets", None),
        ("current_offsets", "current_offsets"),
        ("x", None),
        ("", None),
    ],
)
def test_the_closest(name: str, meant: str | None) -> None:
    assert close_name(name, ["current_offsets", "group_id"]) == meant


def test_several_the_closest_first() -> None:
    names = ["--columns", "--column", "--sort"]
    assert close_names("--colum", names, 3) == ["--column", "--columns"]
    assert close_names("--colum", names) == ["--column"]
    assert close_names("--colum", names, 3, likeness=0.9) == ["--column"]
