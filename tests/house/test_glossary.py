"""The glossary of docs/design.md: it is sorted, and every name under which it says that a term appears exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
SOURCES: Final = (
    "generator/kafka_records_runtime",
    "generator/kafka_records_codegen",
    "spark_udfs/kafka_records_engine",
    "spark_udfs/kafka_records_tables",
    "generated/kafka_records",
)


def glossary() -> dict[str, str]:
    """The names under which each term appears, according to the glossary of docs/design.md."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").split("\n## Glossary\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:2] == "| "]
    return {term: appears for term, _, appears in rows[1:]}


def test_terms_are_sorted_and_stand_for_names_that_exist() -> None:
    terms = glossary()
    assert list(terms) == sorted(terms)
    sources = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    words = {word for path in sources for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    for term, appears in terms.items():
        for name in re.findall(r"`([^`]+)`", appears):
            parts = re.findall(r"\w+", name)
            assert parts, (term, name)
            missing = [part for part in parts if part not in words and not (ROOT / part).is_dir()]
            assert missing == [], (term, name)
