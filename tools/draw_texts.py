"""Draw texts of the packages by seed, to be read by somebody who has not seen them: tests/data/plain_words has draws.

tools/draw_texts.py --seed 28                      # thirty texts of this tree, as Markdown
tools/draw_texts.py --seed 28 --root OTHER_TREE    # the same of another tree, such as an older checkout

A third are messages, a third docstrings of public things; the others are comments, help texts and descriptions of
columns. Above a text is what its readers see next to it: the signature, the option, the column, or the line of code. A
reader puts each text into one sentence, and somebody who knows the code says whether it was understood.
"""

from __future__ import annotations

import argparse
import ast
import random
from functools import cache
from pathlib import Path
from typing import Final

from tools.texts import SHIPPED, Kind, Text, tree_texts

_SHARES: Final[dict[Kind, int]] = {"message": 10, "docstring": 10, "comment": 4, "help": 3, "text": 3}
"""How many texts of each kind are drawn. Of other texts, those that describe a column."""

_FEWEST_WORDS: Final = 5


def main() -> int:
    """Print a draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True, help="number that decides which texts are drawn")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="tree to draw from")
    options = parser.parse_args()
    for number, text in enumerate(drawn(options.root, options.seed), 1):
        kind = "column" if text.kind == "text" else text.kind
        print(f"{number}. {kind}, {text.path}:{text.line}\n")
        if subject := described(options.root, text):
            print(f"   `{subject}`\n")
        print("\n".join(f"   > {line}".rstrip() for line in text.text.splitlines()) + "\n")
    return 0


def drawn(root: Path, seed: int) -> list[Text]:
    """Thirty texts of a tree, of each kind as many as _SHARES says, in the order of kinds; equal for equal seeds."""
    chooser = random.Random(seed)
    found = [text for text in tree_texts(root, SHIPPED) if len(text.text.split()) >= _FEWEST_WORDS]
    candidates = {kind: [text for text in found if text.kind == kind] for kind in _SHARES}
    candidates["text"] = [
        text for text in candidates["text"] if "/tables/" in text.path and described(root, text).startswith("column ")
    ]
    return [text for kind, share in _SHARES.items() for text in chooser.sample(candidates[kind], share)]


def described(root: Path, text: Text) -> str:
    """What a text other than a message is about, as its readers see it; empty if that is unknown."""
    if text.kind == "comment":
        return _commented(root / text.path, text)
    return _subjects(root / text.path).get(text.line, "") if text.kind in ("docstring", "help", "text") else ""


def _commented(file: Path, text: Text) -> str:
    """The code on the line of a comment, or on the next line."""
    lines = file.read_text(encoding="utf-8").splitlines()
    beside = lines[text.line - 1].partition("#")[0].strip()
    return beside or next((line.strip() for line in lines[text.end_line :] if line.strip()), "")


@cache
def _subjects(file: Path) -> dict[int, str]:
    """What the strings of a file describe, by the line on which they start."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found |= dict.fromkeys(_lines(node), _called(node, file))
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, within = stack.pop()
        body = getattr(node, "body", None)
        before, place = node, within
        inside = f"{within}{node.name}." if isinstance(node, ast.ClassDef) else within
        for child in body if isinstance(body, list) else ():
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                found[child.lineno] = _signature(before, file, place)
            before, place = child, inside
            stack.append((child, inside))
    return found


def _lines(call: ast.Call) -> list[int]:
    """The lines of the strings among the arguments of a call."""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    return [each.lineno for each in arguments if isinstance(each, ast.Constant | ast.JoinedStr)]


def _called(call: ast.Call, file: Path) -> str:
    """The column, the option or the command that a call declares."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    values = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if name == "Column" and values:
        return f"column {file.stem}.{values[0]}"
    if name == "add_argument":
        return " ".join(value for value in values if " " not in value)
    return values[0] if name in ("add_parser", "Option") and values else ""


def _signature(node: ast.AST, file: Path, within: str) -> str:
    match node:
        case ast.Module():
            return f"module {'.'.join(file.with_suffix('').parts[-3:])}"
        case ast.ClassDef():
            return f"class {within}{node.name}({', '.join(map(ast.unparse, node.bases))})".replace("()", "")
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            return f"{within}{node.name}({ast.unparse(node.args)}){returned}"
        case ast.AnnAssign():
            return f"{within}{ast.unparse(node.target)}: {ast.unparse(node.annotation)}"
        case ast.Assign():
            return within + " = ".join(map(ast.unparse, node.targets))
    return ""


if __name__ == "__main__":
    raise SystemExit(main())
