"""Checks that the built site loads nothing from other hosts, and that none of its links is broken.

Zensical checks links between pages. This module checks its output, including files, pictures and anchors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag

_LOADED: Final = frozenset(
    (("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src"), ("object", "data"))
)
"""The attributes whose address a browser loads by itself; for `link`, except with the relations below."""
_NOT_LOADED: Final = frozenset(("canonical", "prev", "next", "alternate", "edit"))
_ELSEWHERE: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
_IN_CSS: Final = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)


class _Page(HTMLParser):
    """The anchors of a page, the targets of its links, and what a browser loads for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        for name, value in values.items():
            if (tag, name) in _LOADED and not (tag == "link" and values.get("rel") in _NOT_LOADED):
                self.loaded.append(value)


def troubles(site: Path, *by_script: str) -> Iterator[str]:
    """A line for each broken link, and for each file that would be loaded from another host.

    `by_script` names pages whose links are handled by their own scripts.
    """
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site)
        yield from (f"{name}: loads {address}" for address in page.loaded if _ELSEWHERE.match(address))
        if str(name) in by_script:
            continue
        for link in dict.fromkeys([*page.links, *page.loaded]):
            if wrong := _wrong(link, path, pages):
                yield f"{name}: {link}: {wrong}"
    for path in sorted(site.rglob("*.css")):
        for address in _IN_CSS.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: loads {address}"


def _wrong(link: str, path: Path, pages: dict[Path, _Page]) -> str | None:
    if re.match(r"[a-z][a-z0-9+.-]*:", link, re.IGNORECASE):
        return None
    target, anchor = urldefrag(link)
    place = path if target in ("", ".") else (path.parent / unquote(target)).resolve()
    if place.is_dir():
        place /= "index.html"
    if not place.is_file():
        return "no such file"
    if anchor and place in pages and unquote(anchor) not in pages[place].anchors and not anchor.startswith("__"):
        return "no such anchor"
    return None
