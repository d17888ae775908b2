"""HTML as a notebook reads it: closed elements, their texts, and nothing that runs code or loads files."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

ELEMENTS: Final = frozenset(
    (
        *("bdi", "br", "code", "div", "figcaption", "figure", "li", "p", "path", "strong", "svg"),
        *("table", "tbody", "td", "th", "thead", "title", "tr", "ul"),
    )
)
ATTRIBUTES: Final = frozenset(
    ("d", "fill", "height", "role", "scope", "stroke", "stroke-width", "style", "title", "viewbox", "width", "xmlns")
)
_WITHOUT_END: Final = frozenset(("br", "path"))


class HtmlRead(HTMLParser):
    """Fails for other elements and attributes than those above, and for elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._open: list[str] = []
        self.cells: list[str] = []
        """The texts of cells of tables."""
        self.titles: list[str] = []
        self.texts: list[str] = []
        self.found: set[str] = set()
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        for name, value in attrs:
            assert name in ATTRIBUTES, name
            assert value is not None
            assert name in ("title", "xmlns") or not ("url(" in value or "//" in value)
        self.found.add(tag)
        if tag not in _WITHOUT_END:
            self._open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _WITHOUT_END:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if "td" in self._open:
            self.cells[-1] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl}")

    @property
    def text(self) -> str:
        """All texts, concatenated."""
        return "".join(self.texts)
