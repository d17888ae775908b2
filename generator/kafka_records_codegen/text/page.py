"""What generated pages have in common: the header, templates, docstrings, black."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from kafka_records_codegen.model.messages import Folder
from kafka_records_codegen.model.notes import one_line as one_line
from kafka_records_codegen.text.mark import Mark
from kafka_records_codegen.text.styling import LINE_LENGTH, in_style, with_long_lines_in_style
from kafka_records_codegen.text.visible import visible

_QUOTES: Final = re.compile(r'"{3,}|"+\Z')


@dataclass(frozen=True)
class Links:
    """The relative paths from the folder of the pages to the specs and to the generated package.

    A path is None if pages should name the target without a link.
    """

    specs: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class Package:
    """A generated package: its import name, and the links between its modules and its reference pages.

    `docs` is the folder of the pages as named in docstrings; None if docstrings do not mention pages.
    """

    name: str
    docs: str | None = None
    links: Links = Links()

    def module(self, *parts: str) -> str:
        """The dotted name of a subpackage or a module in it. `parts` may be folder paths."""
        return ".".join(part.replace("/", ".") for part in (self.name, *parts) if part)

    def reference(self, page: str) -> str:
        """The sentence about the reference page in a module's docstring."""
        return "" if self.docs is None else f"\n\nReference: {self.docs}/{page}"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("kafka_records_codegen"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def fill(template: str, **values: Any) -> str:
    """Fill in a template without formatting the result."""
    return _environment().get_template(template).render(**values)


def render(template: str, **values: Any) -> str:
    """Fill in the template of a module, and format it with black."""
    return in_style(fill(template, **values))


def render_in_style(template: str, **values: Any) -> str:
    """Like `render`, for a template that follows black's style except for long lines. Many times faster."""
    return with_long_lines_in_style(fill(template, **values))


def origin(package: Package, sources: list[str]) -> list[str]:
    """The lines that say which tool generated the file, from which specs, and how to regenerate it. They contain no
    time, so the same specs give the same bytes."""
    docs = "" if package.docs is None else " --docs DIR"
    return [
        Mark("codecs", package.name).line,
        *([f"Specs: {', '.join(sources)}"] if sources else []),
        f"To regenerate: kafka-records-codegen generate --specs DIR --out DIR --package {package.name}{docs}",
    ]


def header(package: Package, sources: list[str]) -> str:
    """The lines of `origin` as comments."""
    mark, *specs, again = origin(package, sources)
    wrapped = [line for text in specs for line in textwrap.wrap(visible(text), LINE_LENGTH - 2)]
    return "\n".join(f"# {line}" for line in (mark, *wrapped, again))


def docstring(text: str, indent: int = 0) -> str:
    """`text` as the inside of a triple-quoted string. Nothing in a spec can end the string or escape from it."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").strip().replace("\\", "\\\\")
    escaped = visible(_QUOTES.sub(lambda match: '\\"' * len(match.group()), plain))
    pad = " " * indent
    lines = [line.rstrip() for line in escaped.split("\n")]
    return "\n".join(line if number == 0 or not line else pad + line for number, line in enumerate(lines))


def sources(folder: Folder) -> list[str]:
    """The specs to name in the header of a page about a whole folder."""
    return [f"{folder.path}/*.json" if folder.path else "*.json"] if folder.messages else []
