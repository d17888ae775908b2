"""Converts texts in a spec to Markdown, escaped so that they are shown unchanged.

The dialect is GitHub's: CommonMark and tables. `|`, `<`, `>`, `&` and the backslash become character references, which
mean the same inside and outside a table cell. Other characters that could start markup get a backslash.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from kafka_records_codegen.text.visible import with_visible_turns

_REFERENCES: Final = {"\\": "&#92;", "|": "&#124;", "<": "&lt;", ">": "&gt;", "&": "&amp;"}
_MARKUP: Final = re.compile(r"[\\|<>&`*\[\]{}~$]|(?<![^\W_])_|_(?![^\W_])|:(?=[\w+-]+:)")
_CODE_SPAN: Final = re.compile(r"(?<![`\\])`([A-Za-z0-9_.]+(?:\[\])?)`(?!`)")
_BLOCK_START: Final = re.compile(r"(?P<mark>[#+=:-])|(?P<number>[0-9]+)(?P<dot>[.)])")
_PLAIN_CODE: Final = re.compile(r"[^\\|<>&`\s](?:[^\\|<>&`\s]| (?! ))*(?<! )")
_NO_TEXT: Final = ("Cc", "Cs", "Cn")


def text(words: str) -> str:
    """`words` on one line, for a paragraph or a table cell. A single word between backticks remains code."""
    line = " ".join(_visible(words).split())
    parts = []
    end = 0
    for match in _CODE_SPAN.finditer(line):
        parts += [_escaped(line[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, _escaped(line[end:])])


def prose(words: str) -> str:
    """Paragraphs and bullet lists, line by line. All other markup in `words` is escaped."""
    return "\n".join(_prose(words.strip().splitlines()))


def code(words: str) -> str:
    """`words` as code, for a paragraph or a table cell. An empty text remains empty."""
    visible = _visible(words)
    if not visible:
        return ""
    if _PLAIN_CODE.fullmatch(visible):
        return f"`{visible}`"
    inside = "".join(letter if letter.isalnum() else f"&#{ord(letter)};" for letter in visible)
    return f"<code>{inside}</code>"


def link(label: str, target: str) -> str:
    """A link to the path `target`. `label` must be Markdown."""
    return f"[{label}]({quote(target, safe='/.-_#')})"


def comment(words: str) -> str:
    """A one-line comment. Nothing in `words` can end it early."""
    return f"<!-- {_visible(words).replace('>', '&gt;').replace('--!', '--&#33;')} -->"


def first_sentence(words: str) -> str:
    """The first sentence of the first paragraph."""
    paragraph = " ".join(re.split(r"\n\s*\n", words.strip(), maxsplit=1)[0].split())
    match = re.match(r".*?[.!?](?=\s|$)", paragraph)
    return match[0] if match else paragraph


def _prose(lines: list[str]) -> Iterator[str]:
    in_item = False
    before = ""
    for line in lines:
        words = line.strip()
        bullet = re.match(r"[-*]\s+(?=\S)", words)
        if not words:
            if before:
                yield ""
            in_item, before = False, ""
            continue
        if bullet:
            words = f"- {_line(words[bullet.end() :])}"
            in_item = True
        elif in_item and line[:1].isspace():
            words = f"  {_line(words)}"
        else:
            if in_item:
                yield ""
            in_item = False
            words = _line(words)
        yield words
        before = words


def _line(words: str) -> str:
    """A line of a paragraph, escaped so that its start does not turn it into another kind of block."""
    match = _BLOCK_START.match(words)
    if match is None:
        return text(words)
    start = f"\\{match['mark']}" if match["mark"] else f"{match['number']}\\{match['dot']}"
    return start + text(f"x{words[match.end() :]}")[1:]


def _escaped(words: str) -> str:
    return _MARKUP.sub(lambda match: _REFERENCES.get(match[0], f"\\{match[0]}"), words)


def _visible(words: str) -> str:
    """`words`, with replacement characters for characters that are not text, such as NUL, and escapes for marks that
    change the writing direction.
    """
    return "".join(
        "\ufffd" if unicodedata.category(each) in _NO_TEXT and each not in "\n\t" else each
        for each in with_visible_turns(words)
    )
