"""docs/columns-inside.md shows what the engine does, and names only what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_records_engine.columns import _assembly, _elements
from tests.columns.worked_example import blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "columns-inside.md").read_text("utf-8")
SHOWN = dict(re.findall(r"<!-- example: (\w+) -->\n\n```text\n(.*?)\n```\n", PAGE, flags=re.DOTALL))
PACKAGE = ROOT / "spark_udfs" / "kafka_records_engine" / "columns"


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return blocks()


def test_every_block_of_the_example_is_shown(made: dict[str, str]) -> None:
    assert [*SHOWN] == [*made]


@pytest.mark.parametrize("name", SHOWN)
def test_a_block_of_the_example(name: str, made: dict[str, str]) -> None:
    """`python -m tests.columns.worked_example` prints the blocks of the page."""
    assert SHOWN[name] == made[name]


def test_limits_that_the_page_names() -> None:
    assert f"With {_elements.FEW} rows or fewer" in PAGE
    assert f"about {_assembly.BLOCK >> 20} MiB at a time" in PAGE


def test_modules_that_the_drawing_names() -> None:
    named = set(re.findall(r"\b(_\w+\.py)\b", PAGE))
    assert named
    assert named <= {path.name for path in PACKAGE.glob("*.py")}


def test_classes_that_the_page_names() -> None:
    code = "\n".join(path.read_text("utf-8") for path in PACKAGE.glob("*.py"))
    names = set(re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)) - {"read", "skip", "hop"}
    assert {"Cursor", "Step", "Plan", "Slot"} <= names
    for name in names:
        assert re.search(rf"^class {name}\b|^{name} = ", code, flags=re.MULTILINE), name
