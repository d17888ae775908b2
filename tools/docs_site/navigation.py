"""The order of the pages of the site. Every page of docs/ is listed once; a folder of generated pages is listed as one
entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"

HOME: Final = "docs/README.md"

RELEASES: Final = "docs/releases"
REFERENCE: Final = "docs/reference"


@dataclass(frozen=True)
class Section:
    """A part of the navigation: pages, by their paths from the root, and subsections.

    The title of a page is its first heading.
    """

    title: str
    pages: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()

    def all_pages(self) -> Iterator[str]:
        """The pages of this section and of its subsections, in order."""
        yield from self.pages
        for section in self.sections:
            yield from section.all_pages()


_BY_HAND: Final = (
    Section("Pages", (HOME,)),
    Section(
        "Start",
        (
            "README.md",
            "docs/start/who-is-behind.md",
            "docs/start/why-offsets-vanished.md",
            "docs/start/may-i-delete.md",
            "docs/start/stuck-transaction.md",
            "docs/start/will-it-load.md",
            "docs/start/decode-in-spark.md",
        ),
    ),
    Section(
        "Ask",
        (
            "docs/report.md",
            "docs/command.md",
            "docs/sql.md",
            "docs/metrics.md",
            "docs/tables.md",
            "docs/sources.md",
            "docs/live.md",
            "docs/state.md",
            "docs/snapshots.md",
            "docs/rescue.md",
            "docs/deleting.md",
        ),
    ),
    Section(
        "Decode",
        (
            "docs/python.md",
            "docs/spark.md",
            "docs/live-spark.md",
            "docs/streams.md",
            "docs/cluster.md",
            "docs/jvm.md",
            "docs/columns.md",
            "docs/avro.md",
        ),
    ),
    Section("Generate", ("docs/generator.md", "docs/evolution.md")),
    Section(
        "Rely on it",
        (
            "docs/limits.md",
            "docs/strictness.md",
            "docs/support.md",
            "docs/trust.md",
            "docs/judge-reach.md",
            "docs/incidents.md",
            "docs/figures.md",
            "docs/comparison.md",
            "SECURITY.md",
        ),
    ),
    Section(
        "Change it",
        (
            "CONTRIBUTING.md",
            "docs/design.md",
            "docs/live-inside.md",
            "docs/columns-inside.md",
            "docs/releasing.md",
            "CHANGELOG.md",
        ),
    ),
)


def navigation() -> tuple[Section, ...]:
    """The navigation of the site."""
    folders = sorted(path.name for path in (ROOT / REFERENCE).iterdir() if path.is_dir())
    of_folders = tuple(Section(name, _in_folder(f"{REFERENCE}/{name}")) for name in folders)
    return (
        *_BY_HAND,
        Section("Releases of Kafka", _in_folder(RELEASES)),
        Section("Reference", (f"{REFERENCE}/README.md",), of_folders),
    )


@cache
def pages() -> tuple[str, ...]:
    """Every page of the site, in the order of the navigation."""
    return tuple(page for section in navigation() for page in section.all_pages())


def _in_folder(folder: str) -> tuple[str, ...]:
    return tuple(sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).glob("*.md")))
