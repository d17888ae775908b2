"""The documentation as a site: its navigation has every page, links become those of the site, and the built site has
nothing that must not be there."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import expect

from tests.browsers import started_browser
from tools.docs_site.__main__ import build, nav_text
from tools.docs_site.checking import troubles
from tools.docs_site.example import PLACE
from tools.docs_site.navigation import DOCS, ROOT, navigation, pages
from tools.docs_site.pages import place_of, write_pages


def test_the_navigation_names_every_page_once_and_nothing_else() -> None:
    there = [
        *DOCS.rglob("*.md"),
        *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ]
    assert sorted(pages()) == sorted(str(path.relative_to(ROOT)) for path in there)


def test_the_navigation_in_toml_names_the_places_of_the_pages() -> None:
    def places(entries: list[Any]) -> list[str]:
        return [
            place
            for entry in entries
            for place in (
                [entry] if isinstance(entry, str) else [each for part in entry.values() for each in places(part)]
            )
        ]

    found = tomllib.loads(f"nav = [{nav_text(navigation())}]")["nav"]
    assert places(found) == [place_of(page) for page in pages()]
    assert len(set(places(found))) == len(pages())


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all pages of the site before it is built."""
    folder = tmp_path_factory.mktemp("pages")
    write_pages(folder)
    return folder


def test_links_become_those_of_the_site(written: Path) -> None:
    home = (written / "index.md").read_text(encoding="utf-8")
    assert "](project/readme.md)" in home
    behind = (written / "start" / "who-is-behind.md").read_text(encoding="utf-8")
    assert "](../tables.md#lag)" in behind
    python = (written / "python.md").read_text(encoding="utf-8")
    assert "](files/examples/offset_admin.py.txt)" in python
    copied = (written / "files" / "examples" / "offset_admin.py.txt").read_text(encoding="utf-8")
    assert copied == (ROOT / "examples" / "offset_admin.py").read_text(encoding="utf-8")
    assert (written / "img" / "linear.svg").is_file()
    listed = (written / "files" / "message_specs.txt").read_text(encoding="utf-8")
    assert "message_specs/consumer_offsets/OffsetCommitValue.json\n" in listed


def test_blocks_keep_what_looks_like_a_link(written: Path) -> None:
    name = "docs/python.md"
    text = (ROOT / name).read_text(encoding="utf-8")
    assert (written / place_of(name)).read_text(encoding="utf-8").split("```")[1::2] == text.split("```")[1::2]


PAGE = "<a href='other.html#there'>x</a><script src='own.js'></script><link rel=canonical href='https://example.org/'>"


@pytest.mark.parametrize(
    ("page", "line"),
    [
        (PAGE, None),
        ("<a href=https://example.org>x</a>", None),
        ("<a href='other.html#nowhere'>x</a>", "page.html: other.html#nowhere: no such anchor"),
        ("<a href=nowhere.html>x</a>", "page.html: nowhere.html: no such file"),
        ("<img src=nowhere.svg>", "page.html: nowhere.svg: no such file"),
        ("<script src='https://example.org/x.js'></script>", "page.html: loads https://example.org/x.js"),
        ("<link rel=stylesheet href=//example.org/x.css>", "page.html: loads //example.org/x.css"),
        ("<link rel=preconnect href=HTTPS://example.org>", "page.html: loads HTTPS://example.org"),
    ],
)
def test_what_is_wrong_with_a_site_is_said(tmp_path: Path, page: str, line: str | None) -> None:
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    (tmp_path / "other.html").write_text("<h1 id=there>There</h1>", encoding="utf-8")
    (tmp_path / "own.js").write_text("", encoding="utf-8")
    assert [*troubles(tmp_path)][:1] == ([] if line is None else [line])


def test_a_style_sheet_that_asks_another_host_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.css").write_text(
        "@import 'x.css'; a { background: url(https://example.org/x.png) }", encoding="utf-8"
    )
    assert [*troubles(tmp_path)] == ["x.css: loads https://example.org/x.png"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built in strict mode."""
    return build(tmp_path_factory.mktemp("made") / "made")


@pytest.mark.matrix
def test_the_site_is_built_in_strict_mode(site: Path) -> None:
    for page in pages():
        assert (site / place_of(page)).with_suffix(".html").is_file()
    assert (site / "search.js").is_file()
    assert (site / "search.json").is_file()
    assert (site / PLACE).is_file()
    assert not [*site.rglob("*.woff*")]


@pytest.mark.matrix
@pytest.mark.browser
def test_pages_that_are_opened_as_files_search_and_ask_for_nothing(site: Path) -> None:
    said: list[str] = []
    asked: list[str] = []
    with started_browser() as browser:
        page = browser.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.locator("button.md-search__button").first.click()
        box = page.get_by_role("combobox", name="Search")
        box.press_sequentially("UnstableOffsetCommit hanging", delay=30)
        expect(box).to_have_value("UnstableOffsetCommit hanging")
        box.fill("open_transactions")
        found = page.get_by_role("option").first
        expect(found).to_contain_text("open_transactions")
        assert said == []
        found.click()
        page.wait_for_url(re.compile(r"#"))
        assert page.url.startswith(site.as_uri())
    assert {url for url in asked if not url.startswith(("file:", "about:", "data:"))} == set()


_AXE_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_AXE_PAGES: Final = ("index", "start/who-is-behind", "command", "figures", "spark", "tables", "reference/index")


@pytest.mark.matrix
@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(site: Path, scheme: Literal["light", "dark"]) -> None:
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    found = {}
    with started_browser() as browser:
        page = browser.new_page(color_scheme=scheme)
        for name in _AXE_PAGES:
            page.goto((site / f"{name}.html").as_uri())
            page.wait_for_timeout(300)  # colours of links fade in
            page.evaluate(axe)
            answer = page.evaluate("rules => axe.run({runOnly: rules, resultTypes: ['violations']})", _AXE_RULES)
            found[name] = [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in answer["violations"]]
    assert found == {name: [] for name in _AXE_PAGES}
