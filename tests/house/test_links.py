"""No link between the pages of this repository is broken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
HOMES = ("docs", "examples", "generator", "message_specs", "spark_udfs", "tests", "tools")

# Pages in `golden` belong to other places, to which the generator would write them.
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(path for home in HOMES for path in (ROOT / home).rglob("*.md"))]
    if path.parent.name != "golden"
)
TEXTS = sorted(
    [*ROOT.glob("*.toml"), ROOT / "Makefile", *(path for home in HOMES for path in (ROOT / home).rglob("*.py"))]
)

MENTION = re.compile(r"(?<![\w/.:-])(?:docs|examples|tests|tools|generator|spark_udfs)/[\w./-]*\.(?:md|py|sh)\b")
"""A page or a program whose path from the root occurs in code or prose."""


def tokens(path: Path) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8")):
        yield token
        yield from token.children or ()


def links(path: Path) -> list[str]:
    found = [token.attrs.get("href") or token.attrs.get("src") for token in tokens(path)]
    return [unquote(str(link)) for link in found if link]


@cache
def anchors(path: Path) -> set[str]:
    """The anchors that a code host gives to titles (the second of a name gets -1), and those that a page has itself."""
    slugs: list[str] = []
    inside = False
    for token in tokens(path):
        if token.type == "inline" and inside:
            text = "".join(child.content for child in token.children or ())
            slugs.append(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-"))
        inside = token.type == "heading_open"
    numbered = [slug if (seen := slugs[:at].count(slug)) == 0 else f"{slug}-{seen}" for at, slug in enumerate(slugs)]
    return {*numbered, *re.findall(r'<a (?:id|name)="([^"]+)"', path.read_text(encoding="utf-8"))}


def trouble(page: Path, link: str) -> str | None:
    """The problem of a link; None if it works."""
    if re.match(r"[a-z]+:", link):
        return None if link.startswith("https://") else "not https"
    place, _, anchor = link.partition("#")
    target = (page.parent / place).resolve() if place else page
    if not target.is_relative_to(ROOT):
        return "leaves the repository"
    if not target.exists():
        return "no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return "no such title"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert {link: trouble(page, link) for link in links(page) if trouble(page, link)} == {}


@pytest.mark.parametrize("link", ["nowhere.md", "README.md#nowhere", "#nowhere", "http://example.org", "../nowhere.md"])
def test_a_link_that_leads_nowhere_is_seen(link: str) -> None:
    assert trouble(ROOT / "README.md", link) is not None


def test_every_page_of_the_folder_stands_in_its_index() -> None:
    named = {link.partition("#")[0] for link in links(ROOT / "docs" / "README.md")}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"} <= named
    assert {"reference/README.md", "../README.md", "../CONTRIBUTING.md"} <= named


def test_files_that_are_named_by_path_exist() -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in [*PAGES, *TEXTS]
        for name in MENTION.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    }
    assert missing == set()
