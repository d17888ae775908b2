"""The prose of the repository, text by text: docstrings, comments and messages of Python files, paragraphs of pages.

The check of wording (tests/house/test_plain_words.py), the list of all messages (tools/message_list.py) and the draw of
texts for readers (tools/draw_texts.py) use this module. It can read any tree, including older ones.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

Kind = Literal["docstring", "private docstring", "comment", "help", "message", "text", "page"]

SHIPPED: Final = (
    "generator/kafka_records_runtime",
    "generator/kafka_records_codegen",
    "spark_udfs/kafka_records_engine",
    "spark_udfs/kafka_records_tables",
)
"""The folders of the packages that users install, without generated ones."""

_CALLS: Final = frozenset({"Finding", "fail", "error", "warn", "print", "write", "report", "refuse", "complain"})
_STRING_OR_COMMENT: Final = re.compile(
    r'''"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""|'{3}[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'{3}'''
    r"""|"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'|\#[^\n]*""",
    re.DOTALL,
)
"""Strings are only matched so that a `#` in a string does not count as a comment. Reading all tokens takes ten times as
long."""

_FOUR_WORDS: Final = re.compile(r"(?:\S+\s+){3}\S")
_PROSE: Final = re.compile(r"[a-z]{2,} [a-z(`'{]")


@dataclass(frozen=True, slots=True)
class Text:
    """A text, its place, and the lines that it takes."""

    kind: Kind
    path: str
    line: int
    end_line: int
    text: str


def python_texts(source: str, path: str) -> list[Text]:
    """The docstrings, comments and texts of a Python file, in the order of their lines."""
    found = [*_strings(source, path), *_comments(source, path)]
    return sorted(found, key=lambda text: (text.line, text.kind))


def page_texts(source: str, path: str) -> list[Text]:
    """The paragraphs, list items and table rows of a Markdown page, without its code blocks."""
    found: list[Text] = []
    block: list[str] = []
    start = 0
    fenced = False

    def close(end: int) -> None:
        if block:
            found.append(Text("page", path, start, end, " ".join(line.strip() for line in block)))
            block.clear()

    number = 0
    for number, line in enumerate(source.splitlines(), 1):
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            close(number - 1)
            fenced = not fenced
            continue
        if fenced or not bare or bare.startswith("<!--"):
            close(number - 1)
            continue
        if re.match(r"(?:[-*+]|\d+\.) |\||#", bare):
            close(number - 1)
        if not block:
            start = number
        block.append(line)
    close(number)
    return found


def _strings(source: str, path: str) -> Iterator[Text]:
    tree = ast.parse(source)
    docs = dict(_docstrings(tree))
    parents = _parents(tree)
    for node in parents:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and not isinstance(parents[node], ast.JoinedStr)
        ):
            text = node.value
        elif isinstance(node, ast.JoinedStr) and not isinstance(parents[node], ast.FormattedValue):
            text = template(node)
        else:
            continue
        end = node.end_lineno or node.lineno
        if node in docs:
            yield Text(docs[node], path, node.lineno, end, inspect.cleandoc(text))
        elif isinstance(kind := _use(node, parents), str) and (kind != "text" or _is_prose(text)):
            yield Text(kind, path, node.lineno, end, text)


def _parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """The parent of each node, level by level. `ast.walk` takes three times as long."""
    parents: dict[ast.AST, ast.AST] = {}
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        for name in node._fields:
            value = getattr(node, name, None)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and not isinstance(child, ast.expr_context):
                    parents[child] = node
                    nodes.append(child)
    return parents


def template(node: ast.JoinedStr) -> str:
    """An f-string with its expressions in braces, as in its source."""
    parts: list[str] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue):
            parts.append("{" + ast.unparse(part.value) + "}")
    return "".join(parts)


def _is_prose(text: str) -> bool:
    return bool(_FOUR_WORDS.search(text) and _PROSE.search(text))


def _docstrings(tree: ast.Module) -> Iterator[tuple[ast.expr, Kind]]:
    """The constants that are docstrings, with the kind of each: public or private. The docstring of an attribute is
    below it."""
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, private = stack.pop()
        body = getattr(node, "body", None)
        before: ast.stmt | None = None
        for child in body if isinstance(body, list) else ():
            match child:
                case ast.Expr(value=ast.Constant(value=str()) as value):
                    yield value, "private docstring" if private or _is_private(before) else "docstring"
            before = child
        inside = private or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):  # expressions contain no docstrings
                stack.append((child, inside or _is_private(child)))


def _is_private(node: ast.AST | None) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name.startswith("_") and not node.name.endswith("__")
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name.startswith("_")
    return False


def _use(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Kind | None:
    """What a string is used for, judged by the call that gets it; None if it is not a text."""
    inner = node
    while (outer := parents.get(inner)) is not None:
        if isinstance(outer, ast.keyword):
            if outer.arg in ("help", "description", "epilog"):
                return "help"
        elif isinstance(outer, ast.Call) and inner is not outer.func:
            name = outer.func.attr if isinstance(outer.func, ast.Attribute) else getattr(outer.func, "id", "")
            if name in _CALLS and _spaced(node):
                return "message"
        elif isinstance(outer, ast.Raise):
            return "message" if _spaced(node) else None
        elif isinstance(outer, ast.stmt):
            break
        inner = outer
    return "text"


def _spaced(node: ast.AST) -> bool:
    text = template(node) if isinstance(node, ast.JoinedStr) else str(getattr(node, "value", ""))
    return " " in text.strip()


def _comments(source: str, path: str) -> Iterator[Text]:
    """The comments. Consecutive lines are one comment."""
    block: list[tuple[int, int, str]] = []

    def joined() -> Text:
        words = " ".join(comment.lstrip("#").strip() for _, _, comment in block)
        return Text("comment", path, block[0][0], block[-1][0], words)

    line, counted = 1, 0
    for found in _STRING_OR_COMMENT.finditer(source):
        comment = found[0]
        if not comment.startswith("#") or comment.startswith(("# --", "# noqa", "# type:")):
            continue  # a string, a separator line, or a comment for a tool
        line += source.count("\n", counted, found.start())
        counted = found.start()
        start = source.rfind("\n", 0, counted) + 1
        own_line = not source[start:counted].strip()
        if block and not (own_line and (line, counted - start) == (block[-1][0] + 1, block[-1][1])):
            yield joined()
            block = []
        block.append((line, counted - start, comment.rstrip()))
    if block:
        yield joined()


def tree_texts(root: Path, folders: tuple[str, ...]) -> Iterator[Text]:
    """The texts of all Python files and pages below some folders (or single files) of a tree, by path."""
    for folder in folders:
        place = root / folder
        files = [place] if place.is_file() else sorted(place.rglob("*"))
        for file in files:
            if file.suffix in (".py", ".md"):
                yield from _file_texts(file, file.relative_to(root).as_posix())


@cache
def _file_texts(file: Path, path: str) -> list[Text]:
    source = file.read_text(encoding="utf-8")
    return python_texts(source, path) if file.suffix == ".py" else page_texts(source, path)
