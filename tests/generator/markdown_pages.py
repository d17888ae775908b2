"""A Markdown page as a reader sees it: rendered to HTML, then parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from markdown_it import MarkdownIt

Table = list[list[str]]


@dataclass
class Page(HTMLParser):
    """Texts of the elements of a page; blanks in them are single spaces."""

    headings: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    paragraphs: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    code_blocks: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    comments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag == "br":
            self._text.append(" ")
        elif tag == "a":
            self.links.append(dict(attrs)["href"] or "")
        elif tag not in ("code", "em", "strong"):
            self._text = []

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data.strip())

    def handle_endtag(self, tag: str) -> None:
        text = " ".join("".join(self._text).split())
        if tag in ("th", "td"):
            self.tables[-1][-1].append(text)
        elif re.fullmatch("h[1-6]", tag):
            self.headings.append(text)
        elif tag == "p":
            self.paragraphs.append(text)
        elif tag == "li":
            self.items.append(text)
        elif tag == "pre":
            self.code_blocks.append("".join(self._text))

    def tables_with(self, *header: str) -> list[Table]:
        """The rows below the header of every table that has these columns first."""
        return [table[1:] for table in self.tables if tuple(table[0][: len(header)]) == header]


def read_page(markdown: str) -> Page:
    page = Page()
    page.feed(MarkdownIt("commonmark").enable("table").render(markdown))
    page.close()
    return page


def anchors(page: Page) -> set[str]:
    """The fragments by which hosting services link to the headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in page.headings}
