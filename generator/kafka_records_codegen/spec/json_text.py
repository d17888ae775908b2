"""Reads the JSON of spec files as strictly as Kafka's generator does, and keeps the position of every value.

The dialect is JSON with `//` and `/* */` comments anywhere outside strings. It does not allow `#` comments, trailing
commas, single quotes, or text after the closing brace (which the older dialect allows). If several members have the
same name, the last one counts. Reading continues after a mistake if the intended meaning is clear, so that one run
reports all mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NoReturn

from kafka_records_codegen.spec.violations import Position, SpecText

Kind = Literal["object", "array", "string", "number", "boolean", "null"]

_MAX_DEPTH: Final = 200
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BARE: Final = re.compile(r"[^\s\[\]{},:\"'/#]+")
_PLAIN: Final = re.compile(r"[^\"'\\\x00-\x1f]+")
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS: Final[Mapping[str, Kind]] = {"true": "boolean", "false": "boolean", "null": "null"}


@dataclass(frozen=True)
class JsonMember:
    """A member of an object: the position of its name, and its value."""

    position: Position
    value: Node


@dataclass(frozen=True)
class Node:
    """A JSON value and its start position.

    `text` is the content of a string, or a number, boolean or null as written in the file; `items` are an array's
    elements, and `members` are an object's members. If an array or object is not `is_whole`, reading stopped before its
    end.
    """

    kind: Kind
    position: Position
    text: str = ""
    items: tuple[Node, ...] = ()
    members: Mapping[str, JsonMember] = field(default_factory=dict)
    is_whole: bool = True

    def describe(self) -> str:
        """A description for messages: `an object`, `the number 3`, `'abc'`."""
        if self.kind in ("object", "array"):
            return f"an {self.kind}"
        if self.kind == "string":
            return repr(self.text)
        return f"the number {self.text}" if self.kind == "number" else self.text


class _StopReadingError(Exception):
    """Nothing after this place can be read. `node` is the part of the surrounding value that was read."""

    node: Node | None = None


def parse(source: SpecText) -> Node | None:
    """The value in `source`, or the part of it that precedes the place where reading had to stop.

    Mistakes are reported to `source`. None if nothing was readable.
    """
    reader = _Reader(source)
    try:
        return reader.document()
    except _StopReadingError as stop:
        return stop.node


class _Reader:
    def __init__(self, source: SpecText) -> None:
        self._source = source
        self._text = source.text
        self._at = 1 if source.text.startswith("\ufeff") else 0
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", source.text))]
        self._line = 0
        self._depth = 0

    def document(self) -> Node:
        self._skip_blanks("")
        if self._at == len(self._text):
            self._stop("", "the file is empty; a spec must be one JSON object")
        node = self._value("")
        try:
            self._skip_blanks("")
        except _StopReadingError as stop:
            stop.node = node
            raise
        if self._at < len(self._text) and not self._source.older_dialect:
            self._report("", "nothing may follow the end of the spec; one file holds one message")
        return node

    # ---- values

    def _value(self, path: str) -> Node:
        char = self._peek()
        position = self._position()
        if char == "{":
            return self._nested(path, position, "object")
        if char == "[":
            return self._nested(path, position, "array")
        if char in ('"', "'"):
            return Node("string", position, self._string(path))
        match = _BARE.match(self._text, self._at)
        if match is None:
            self._stop(path, f"expected a value, found {self._found()}")
        word = match.group()
        if word in _LITERALS:
            self._at = match.end()
            return Node(_LITERALS[word], position, word)
        kind: Kind = "number"
        if _NUMBER.fullmatch(word) is None:
            self._report(
                path,
                f"{word!r} is not a JSON value; texts need double quotes, and numbers must not start with zero or +",
            )
            self._source.unreadable.add(position)
            kind = "string"
        self._at = match.end()
        return Node(kind, position, word)

    def _nested(self, path: str, position: Position, kind: Kind) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._stop(path, f"nested more than {_MAX_DEPTH} levels deep")
        self._at += 1
        members: dict[str, JsonMember] = {}
        items: list[Node] = []
        try:
            if kind == "object":
                self._read_members(path, members)
            else:
                self._read_items(path, items)
        except _StopReadingError as stop:
            stop.node = Node(kind, position, items=tuple(items), members=members, is_whole=False)
            raise
        self._depth -= 1
        return Node(kind, position, items=tuple(items), members=members)

    def _read_members(self, path: str, members: dict[str, JsonMember]) -> None:
        while self._another(path, "}"):
            position = self._position()
            if self._peek() not in ('"', "'"):
                self._stop(path, f"expected the name of an attribute in double quotes, found {self._found()}")
            name = self._string(path)
            inner = f"{path}.{name}" if path else name
            self._skip_blanks(inner)
            if self._peek() != ":":
                self._stop(inner, f"expected : and a value after the attribute's name, found {self._found()}")
            self._at += 1
            self._skip_blanks(inner)
            try:
                members[name] = JsonMember(position, self._value(inner))
            except _StopReadingError as stop:
                if stop.node is not None:
                    members[name] = JsonMember(position, stop.node)
                raise
            self._comma(path, "}")

    def _read_items(self, path: str, items: list[Node]) -> None:
        while self._another(path, "]"):
            try:
                items.append(self._value(f"{path}[{len(items)}]"))
            except _StopReadingError as stop:
                if stop.node is not None:
                    items.append(stop.node)
                raise
            self._comma(path, "]")

    def _another(self, path: str, closing: str) -> bool:
        """Whether a member or element follows. If not, the closing bracket is skipped."""
        self._skip_blanks(path)
        if self._peek() != closing:
            return True
        self._at += 1
        return False

    def _comma(self, path: str, closing: str) -> None:
        self._skip_blanks(path)
        char = self._peek()
        if char == ",":
            comma = self._at
            self._at += 1
            self._skip_blanks(path)
            if self._peek() == closing:
                self._report(path, f"there must be no comma before the closing {closing}", comma)
        elif char in ('"', "'", "{", "["):
            self._report(path, f"a comma is missing before {self._found()}")
        elif char != closing:
            self._stop(path, f"expected a comma or the closing {closing}, found {self._found()}")

    def _string(self, path: str) -> str:
        quote, start = self._text[self._at], self._at
        if quote == "'":
            self._report(path, "texts must be in double quotes, not in single ones")
        self._at += 1
        parts: list[str] = []
        while True:
            if match := _PLAIN.match(self._text, self._at):
                parts.append(match.group())
                self._at = match.end()
            char = self._peek()
            if char == quote:
                self._at += 1
                break
            if char in ("", "\n", "\r"):
                self._stop(path, "the text that starts here does not end on its line", start)
            if char == "\\":
                parts.append(self._escape(path))
                continue
            if char < " ":
                self._report(path, f"control character U+{ord(char):04X} in a text; write it as \\u{ord(char):04x}")
            parts.append(char)
            self._at += 1
        return self._joined(parts, path, start)

    def _escape(self, path: str) -> str:
        code = self._text[self._at + 1 : self._at + 2]
        if code == "u":
            digits = self._text[self._at + 2 : self._at + 6]
            if re.fullmatch("[0-9A-Fa-f]{4}", digits):
                self._at += 6
                return chr(int(digits, 16))
            self._report(path, "\\u takes four hexadecimal digits")
        elif code not in _ESCAPES:
            self._report(path, f'\\{code} is not an escape; JSON has \\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX')
        self._at += 2 if code not in ("", "\n", "\r") else 1
        return _ESCAPES.get(code, "")

    def _joined(self, parts: list[str], path: str, start: int) -> str:
        """The parts joined into one text. Two adjacent escaped surrogates become one character."""
        text = "".join(parts)
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._report(
                path, "half of a surrogate pair without the other half; such a text cannot be written as UTF-8", start
            )
            return text.encode("utf-8", "replace").decode("utf-8")

    # ---- blanks and comments

    def _skip_blanks(self, path: str) -> None:
        for token in _leading_blanks(self._text, self._at):
            if token.kind == "open comment":
                self._stop(path, "the comment that starts here is never closed with */", token.start)
            if token.kind == "hash":
                self._report(path, "comments start with // or are between /* and */; # is not allowed", token.start)
            self._at = token.end

    # ---- places and reports

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _found(self) -> str:
        char = self._peek()
        return repr(char) if char else "the end of the file"

    def _position(self, at: int | None = None) -> Position:
        place = self._at if at is None else at
        # Positions mostly increase, so the search for the line starts at the previous line.
        if place < self._line_starts[self._line]:
            self._line = 0
        while self._line + 1 < len(self._line_starts) and self._line_starts[self._line + 1] <= place:
            self._line += 1
        return Position(self._line + 1, place - self._line_starts[self._line] + 1)

    def _report(self, path: str, message: str, at: int | None = None) -> None:
        self._source.report(self._position(at), path, message)

    def _stop(self, path: str, message: str, at: int | None = None) -> NoReturn:
        self._report(path, message, at)
        raise _StopReadingError


# ---- the comment that leads a file


@dataclass(frozen=True)
class _Blank:
    kind: Literal["space", "line comment", "block comment", "open comment", "hash"]
    start: int
    end: int


_BLANK: Final = re.compile(
    r"(?P<space>[ \t\r\n]+)|(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)|(?P<open>/\*)|(?P<hash>\#[^\n]*)",
    re.DOTALL,
)
_BLANK_KINDS: Final[Mapping[str, Literal["space", "line comment", "block comment", "open comment", "hash"]]] = {
    "space": "space",
    "line": "line comment",
    "block": "block comment",
    "open": "open comment",
    "hash": "hash",
}
_LICENCE: Final = re.compile(r"\blicen[sc]ed (?:to|under)\b|\bSPDX-License-Identifier\b|\bcopyright\b", re.IGNORECASE)
_LICENCE_END: Final = re.compile(r"limitations\s+under\s+the\s+License\.?", re.IGNORECASE)


def _leading_blanks(text: str, at: int) -> Iterator[_Blank]:
    while match := _BLANK.match(text, at):
        yield _Blank(_BLANK_KINDS[str(match.lastgroup)], match.start(), match.end())
        at = match.end()


def leading_comment(text: str) -> str:
    """The comment before the spec, without comment markers or a licence notice at its start.

    Paragraphs are separated by an empty line, and lines are unchanged.
    """
    paragraphs = _comments(text)
    if paragraphs and _LICENCE.search(paragraphs[0]):
        end = _LICENCE_END.search(paragraphs[0])
        rest = paragraphs[0][end.end() :].strip("\n") if end else ""
        paragraphs[:1] = [rest] if rest.strip() else []
    return "\n\n".join(paragraphs)


def _comments(text: str) -> list[str]:
    """The comments at the start of `text`. Adjacent `//` lines are one comment."""
    comments: list[str] = []
    lines: list[str] = []
    for token in _leading_blanks(text, 1 if text.startswith("\ufeff") else 0):
        piece = text[token.start : token.end]
        if token.kind == "line comment":
            lines.append(piece[2:].rstrip())
        elif token.kind == "block comment":
            comments += [_dedented(lines), _dedented(_block_lines(piece))]
            lines = []
        elif piece.count("\n") > 1:
            comments.append(_dedented(lines))
            lines = []
    comments.append(_dedented(lines))
    return [comment for comment in comments if comment]


def _block_lines(block: str) -> list[str]:
    lines = block[2:-2].lstrip("*").split("\n")
    starred = all(re.match(r"\s*\*|\s*$", line) for line in lines[1:])
    cleaned = [re.sub(r"^\s*\*", "", line) if starred else line for line in lines[1:]]
    first = lines[0].strip()
    return [
        *([" " + first] if first else []),
        *(line.rstrip().removesuffix("*").rstrip() for line in cleaned),
    ]


def _dedented(lines: list[str]) -> str:
    """The lines without their common indentation, and without empty lines at the start or end."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    shared = min(indents, default=0)
    return "\n".join(line[shared:].rstrip() for line in lines).strip("\n")
