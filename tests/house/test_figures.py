"""A figure that two places tell is the same in both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
HEAD = "| what | took | compared with | ratio | goal | |"

SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def table_behind(head: str, text: str) -> list[str]:
    """The rows of the one table with this head."""
    _, rest = text.split(f"{head}\n")
    rows, _, _ = rest.partition("\n\n")
    return rows.splitlines()[1:]


def sections() -> dict[str, str]:
    """The text of each section, by the anchor of its title."""
    _, *parts = SECTION.split(PAGE)
    return {title.lower().replace(" ", "-"): text for title, text in zip(parts[::2], parts[1::2], strict=True)}


GOALS = table_behind(HEAD, PAGE)
LINKED = [row for row in GOALS if "](#" in row]


def test_the_readme_repeats_lines_of_the_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("(docs/figures.md#", "(#")
    rows = table_behind(HEAD, readme)
    assert 3 <= len(rows) <= 8
    assert set(rows) <= set(GOALS)
    assert any("missed" in row for row in rows)


@pytest.mark.parametrize("row", LINKED)
def test_a_goal_repeats_figures_of_its_section(row: str) -> None:
    (anchor,) = re.findall(r"\]\(#([a-z-]+)\)", row)
    _, _, took, _, ratio, *_ = (cell.strip() for cell in row.split("|"))
    lines = [[cell.strip() for cell in line.split("|")] for line in sections()[anchor].splitlines()]
    figures = set(re.findall(r"[0-9.]+", f"{took} {ratio}"))
    assert figures
    assert any(figures <= set(line) for line in lines)


def test_most_goals_name_their_section() -> None:
    assert len(LINKED) >= 12
