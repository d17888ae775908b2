"""One name for one thing: modules and classes of the five packages do not share names, but for those listed here."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]

WRITTEN: Final = (
    "generator/kafka_records_runtime",
    "generator/kafka_records_codegen",
    "spark_udfs/kafka_records_engine",
    "spark_udfs/kafka_records_tables",
)
GENERATED: Final = "generated/kafka_records"

_ENTRANCE: Final = "how the command of a package is entered"
_AVRO: Final = "values to Avro and back, and the product that writes their schemas: each named for what it is for"
_SPARK: Final = "the part of a package that its users import for Spark, and the product that writes one of them"

SHARED_MODULES: Final = {
    "avro": _AVRO,
    "checks": "what the generator checks of a model, and a table, whose module bears its name",
    "cli": _ENTRANCE,
    "enums": "the module of a generated package, and the product that writes it",
    "errors": "callers import exceptions from the package they use: the runtime has its own, Spark functions theirs",
    "explain": "a subcommand is called as the thing that it runs",
    "notes": "notes of a folder of specs, as read and as resolved",
    "page": "a page of the documentation, as the generator writes it, and that of a report",
    "records": "the classes of decoded records, and in a generated package the schemas of a topic's records",
    "registry": "the module of a generated package, and the product that writes it",
    "report": "a subcommand, and the package of what it writes: it is called as the thing that it runs",
    "schemas": "the modules of a generated package, and the product that writes them",
    "spark": _SPARK,
}
"""Names that several modules or folders bear, and why."""

SHARED_CLASSES: Final = {
    "RetiredType": "a record type that is gone, in the model and in the schemas that are generated from it",
}
"""Names that several public classes bear, and why."""


def modules(folder: str) -> Iterator[tuple[str, str]]:
    """The name of every module and folder without a leading underscore, and where it is."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        named = path.parent if path.name == "__init__.py" else path
        if named != ROOT / folder and path.name != "__main__.py":
            yield named.stem.lstrip("_"), str(named.relative_to(ROOT))


def shared_modules() -> dict[str, list[str]]:
    """By name, the places of modules that bear it. The generated tree counts once: its modules have the names of their
    specs, in several folders each."""
    places = defaultdict(list)
    for folder in WRITTEN:
        for name, place in modules(folder):
            places[name].append(place)
    for name in {name for name, _ in modules(GENERATED)}:
        places[name].append(GENERATED)
    return {name: there for name, there in places.items() if len(there) > 1}


def shared_classes() -> dict[str, list[str]]:
    """By name, the modules that define a public class (or a type under a public name that is no constant) with it."""
    places = defaultdict(list)
    for folder in WRITTEN:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    names = [node.name]
                elif isinstance(node, ast.Assign):
                    names = [target.id for target in node.targets if isinstance(target, ast.Name)]
                    names = [name for name in names if name[0].isupper() and not name.isupper()]
                else:
                    names = []
                for name in names:
                    if not name.startswith("_"):
                        places[name].append(str(path.relative_to(ROOT)))
    return {name: there for name, there in places.items() if len(there) > 1}


def test_modules_share_no_names_but_those_listed() -> None:
    shared = shared_modules()
    assert {name: shared[name] for name in sorted(shared.keys() - SHARED_MODULES.keys())} == {}
    assert sorted(SHARED_MODULES.keys() - shared.keys()) == []


def test_public_classes_share_no_names_but_those_listed() -> None:
    shared = shared_classes()
    assert {name: shared[name] for name in sorted(shared.keys() - SHARED_CLASSES.keys())} == {}
    assert sorted(SHARED_CLASSES.keys() - shared.keys()) == []


# -- the glossary ------------------------------------------------------------------------------------------------------


def glossary() -> dict[str, str]:
    """By term, what the glossary of docs/design.md says it appears as."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").split("\n## Glossary\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:2] == "| "]
    return {term: appears for term, _, appears in rows[1:]}


def test_terms_are_sorted_and_stand_for_names_that_exist() -> None:
    terms = glossary()
    assert list(terms) == sorted(terms)
    sources = [path for folder in (*WRITTEN, GENERATED) for path in (ROOT / folder).rglob("*.py")]
    words = {word for path in sources for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    for term, appears in terms.items():
        for name in re.findall(r"`([^`]+)`", appears):
            parts = re.findall(r"\w+", name)
            assert parts, (term, name)
            missing = [part for part in parts if part not in words and not (ROOT / part).is_dir()]
            assert missing == [], (term, name)
