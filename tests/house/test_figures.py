"""A figure that is in two places is the same in both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
HEAD = "| what | took | compared with | ratio | goal | verdict |"

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
GOALS_IN_README = {row.replace("(#", "(docs/figures.md#") for row in GOALS}
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


SPEED = re.compile(
    r"""[\d.]+\s(?:ns|µs)\b
    |(?:took|takes?|needs?)\s[\d.,]+(?:\sto\s[\d.,]+)?\s(?:times|ms|s|seconds?|minutes?)\b
    |(?:[\d.]+|two|three|four|five|six|seven|eight|nine|ten|twice|half|a\sthird|several\stimes)\s(?:times\s|×\s)?
        (?:as\s(?:fast|long|slow)|slower|faster)
    |[\d.]+\s%\s(?:slower|faster|cheaper|dearer)
    |[\d.]+\s(?:million\s)?(?:rows|records|MB|MiB)/s""",
    re.VERBOSE,
)
"""A speed, or how two speeds compare."""

EXPERIMENTS = {
    "design.md": {
        "0.015 µs": "reading a record without a check that the input is bytes",
        "20 % slower": "putting the notes of GroupMetadata into their places at once",
        "took 2.5 times": "the network client of kafka-python and ours, on the same 336 MB",
    },
    "generator.md": {"took 84 s": "a message with 9 999 fields"},
}
"""By page and figure, the single experiment that the figure is with."""

PROSE = sorted(
    {*(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "README.md"} - {ROOT / "docs" / "figures.md"}
)


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_no_other_page_tells_a_speed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    prose = "\n".join(line for line in text.splitlines() if line not in GOALS_IN_README)
    found = {" ".join(speed.split()) for speed in SPEED.findall(prose)}
    assert found == set(EXPERIMENTS.get(page.name, {}))


def test_most_goals_name_their_section() -> None:
    assert len(LINKED) >= 12
