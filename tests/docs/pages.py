"""Runs the blocks of a page, and rewrites them with their real output.

A `console` block has commands after `$ ` (a line that ends with a backslash goes on, so does a here-document) and what
each prints on either stream. In a `python` block the `# ` lines right below an expression are what it prints and is. A
shell runs each console block, one interpreter all Python of a page.

    python -m tests.docs.pages FOLDER PAGE [FOLDER PAGE …]    prints the python blocks of the pages as JSON
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import traceback
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt


def blocks(page: Path, language: str) -> list[str]:
    """The text of every fenced block of a language."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))
    return [token.content for token in tokens if token.type == "fence" and token.info == language]


# -- console -----------------------------------------------------------------------------------------------------------


def commands(block: str) -> list[str]:
    """The commands of a console block, as a user types them."""
    found: list[str] = []
    ends_with: str | None = None
    for line in block.splitlines():
        if ends_with is not None:
            found[-1] += f"\n{line}"
            if ends_with and line != ends_with:
                continue
        elif line.startswith("$ "):
            found.append(line[2:])
        else:
            continue
        here = re.search(r"<<'(\w+)'$", line)
        ends_with = here[1] if here else "" if line.endswith("\\") else None
    return found


def run_console(block: str, folder: Path, environment: Mapping[str, str]) -> str:
    """The block with the output of this machine: every command with its output, all run in one shell."""
    typed = commands(block)
    mark = uuid.uuid4().hex
    lines = ["back() { return $1; }"]
    for command in typed:
        # The mark must not change $? for the next command.
        lines += [command, f"status=$?; echo {mark}; back $status"]
    shell = subprocess.run(
        ["/bin/sh"],
        input="\n".join(lines),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    printed = shell.stdout.split(f"{mark}\n")
    found = [f"$ {command}\n{output}" for command, output in zip(typed, printed, strict=False)]
    return "".join(_as_shown(part, block) for part in found)


def _as_shown(part: str, block: str) -> str:
    """A command with its output. For a pipe, lines are in the block's order, because its programs print at any time."""
    lines = part.splitlines()
    if "|" in lines[0]:
        everything = block.splitlines()
        start = everything.index(lines[0])
        shown = everything[start : start + len(lines)]
        if sorted(shown) == sorted(lines):
            return "".join(f"{line}\n" for line in shown)
    return part


# -- Python ------------------------------------------------------------------------------------------------------------


def run_python(block: str, namespace: dict[str, Any]) -> str:
    """The block, with the `# ` lines below expressions as this interpreter would write them."""
    lines = block.splitlines()
    shown: list[str] = []
    at = 0
    for statement in ast.parse(block).body:
        assert statement.end_lineno is not None
        shown += lines[at : statement.end_lineno]
        at = end = statement.end_lineno
        while end < len(lines) and lines[end].startswith("#"):
            end += 1
        try:
            result = _run(statement, namespace)
        except Exception:
            return "\n".join([*shown, traceback.format_exc()])
        if isinstance(statement, ast.Expr) and end > at:
            # Spark's show prints an empty line at the end, which pages leave out.
            shown += [f"# {line}".rstrip() for line in result.rstrip("\n").splitlines()]
            at = end
    return "\n".join([*shown, *lines[at:], ""])


def _run(statement: ast.stmt, namespace: dict[str, Any]) -> str:
    """The output of a statement, and the value of an expression."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), "<page>", "exec"), namespace)
        elif (value := eval(compile(ast.Expression(statement.value), "<page>", "eval"), namespace)) is not None:
            print(repr(value))
    return printed.getvalue()


def main(arguments: Sequence[str]) -> None:
    """Run pages one after another, each in its folder and with a separate namespace."""
    found = {}
    for folder, page in zip(arguments[::2], arguments[1::2], strict=True):
        os.chdir(folder)
        namespace: dict[str, Any] = {"__name__": "__main__"}
        found[page] = [run_python(block, namespace) for block in blocks(Path(page), "python")]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
