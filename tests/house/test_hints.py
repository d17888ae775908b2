"""Only one module says what to install; it knows whether the project came from a clone, a file or an index."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEACHER = ROOT / "generator/kafka_records_runtime/text/installing.py"
PROGRAMS = sorted(
    path for folder in ("generator", "spark_udfs", "tools") for path in (ROOT / folder).rglob("*.py") if path != TEACHER
)


def hints(text: str) -> list[str]:
    """Texts of a module, other than docstrings, that tell what to install."""
    if "install" not in text and "kafka-records" not in text:
        return []
    tree = ast.parse(text)
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        f"{node.lineno}: {node.value}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements
        if "pip install" in node.value or "kafka-records[" in node.value
    ]


def test_hints_are_found_and_docstrings_are_none() -> None:
    assert hints("""raise ValueError("needs it: pip install it")""") == ["1: needs it: pip install it"]
    assert hints('say(f"get kafka-records[{extra}]")') == ["1: get kafka-records["]
    assert hints("def made():\n    'As `pip install -e .` does.'\n") == []
    assert hints(TEACHER.read_text(encoding="utf-8"))


def test_no_program_says_by_itself_what_to_install() -> None:
    assert PROGRAMS
    found = {path: hints(path.read_text(encoding="utf-8")) for path in PROGRAMS}
    assert {str(path.relative_to(ROOT)): said for path, said in found.items() if said} == {}
