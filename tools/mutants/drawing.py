"""All mutants of some modules, and a random draw from them, given a seed."""

from __future__ import annotations

import ast
import hashlib
import importlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tools.mutants.operators import Operator, Position, operators

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = ROOT / "spark_udfs"

MUTATED: Final = ("kafka_records_tables/coordinator", "kafka_records_tables/tables/removal")
"""The folders with the rules about groups, offsets, transactions and share state, and about what expires or can be
deleted."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: str
    """The path of the module below spark_udfs."""
    operator: str
    occurrence: int
    line: int
    identity: str
    """The text of its line, its column there, and its number among the mutants with the same text and column."""

    @property
    def module(self) -> str:
        """The module's name for `import`."""
        return self.path.removesuffix(".py").replace("/", ".")

    @property
    def file(self) -> Path:
        """The file of the module."""
        return SOURCES / self.path

    def source(self) -> str:
        """The changed module."""
        return _changed(self.file, self.operator, self.occurrence)

    def change(self) -> tuple[str, str]:
        """The lines before and after the change, without indentation."""
        before, after = (text.split("\n") for text in (self.file.read_text("utf-8"), self.source()))
        shorter = min(len(before), len(after))
        same_tail = next((at for at in range(1, shorter) if before[-at] != after[-at]), shorter)
        first = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), 0)
        cut = [lines[first : max(len(lines) - same_tail + 1, first + 1)] for lines in (before, after)]
        one, other = (" ".join(line.strip() for line in lines) for lines in cut)
        return one, other


@cache
def _changed(file: Path, operator: str, occurrence: int) -> str:
    mutating: Any = importlib.import_module("cosmic_ray.mutating").MutationVisitor
    changed: str = mutating.mutate_code(file.read_text("utf-8"), operators()[operator], occurrence)
    return changed


def modules() -> list[str]:
    """The paths of the modules that are changed."""
    found = [path for folder in MUTATED for path in sorted((SOURCES / folder).rglob("*.py"))]
    return [str(path.relative_to(SOURCES)) for path in found if path.name != "__init__.py"]


def mutants(paths: Sequence[str]) -> Iterator[Mutant]:
    """All mutants of these modules, in order. Annotations are left out, because they are not executed."""
    every = operators()
    tools: Any = importlib.import_module("cosmic_ray.ast")
    for path in paths:
        source = (SOURCES / path).read_text("utf-8")
        nodes = list(tools.ast_nodes(tools.get_ast(source)))
        lines, not_run = source.split("\n"), list(_not_run(source))
        for name, operator in every.items():
            same: Counter[str] = Counter()
            for occurrence, (start, end) in enumerate(_positions(operator, nodes)):
                if not any(first <= start and end <= last for first, last in not_run):
                    place = f"{start[1]}:{end[1]}:{lines[start[0] - 1]}"
                    same[place] += 1
                    yield Mutant(path, name, occurrence, start[0], f"{place}:{same[place]}")


def _positions(operator: Operator, nodes: Sequence[Any]) -> Iterator[Position]:
    for node in nodes:
        yield from operator.mutation_positions(node)


def _not_run(source: str) -> Iterator[Position]:
    """The positions of annotations, of imports for types, and of texts for people (errors, `__str__`, `__repr__`)."""
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef):
            parts = [node.returns, *(arg.annotation for arg in ast.walk(node.args) if isinstance(arg, ast.arg))]
            if node.name in ("__str__", "__repr__"):
                parts.append(node)
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts = [node]
        for part in parts:
            if part is not None:
                placed: Any = part
                yield (placed.lineno, placed.col_offset), (placed.end_lineno, placed.end_col_offset)


def draw(count: int, seed: int) -> tuple[Iterator[Mutant], int]:
    """A random draw of `count` mutants, the same for the same seed, and the number of all mutants. Mutants that do not
    compile are not counted.

    A mutant's place in the draw depends only on its own line, so a change elsewhere in the code does not change the
    draw.
    """

    def place(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed}:{mutant.path}:{mutant.operator}:{mutant.identity}".encode()).digest()

    every = sorted(mutants(modules()), key=place)
    return islice(filter(_compiles, every), count), len(every)


def _compiles(mutant: Mutant) -> bool:
    try:
        compile(mutant.source(), str(mutant.file), "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True
