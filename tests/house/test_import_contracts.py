"""The import-linter contracts: the kinds of tools/import_contracts.py on small graphs, and imports that break ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import grimp
from importlinter import ContractCheck

from tools.import_contracts import OnlyContract, PrivateContract, ThirdPartiesContract

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]


def graph(*imports: tuple[str, str]) -> grimp.ImportGraph:
    built = grimp.ImportGraph()
    for name in ("app", "app.core", "app.spark"):
        built.add_module(name)
    for number, (importer, imported) in enumerate(imports, start=1):
        # import-linter adds third parties in the same way.
        built.add_module(imported, is_squashed=not imported.startswith("app"))
        built.add_import(importer=importer, imported=imported, line_number=number, line_contents=f"import {imported}")
    return built


def check(
    built: grimp.ImportGraph,
    importers: list[str],
    may_import: list[str],
    without: tuple[str, ...] = (),
) -> ContractCheck:
    options = {"importers": importers, "may_import": may_import, "not_importers": list(without)}
    return OnlyContract("the contract", {}, options).check(built, verbose=False)


def test_itself_and_the_list_are_allowed() -> None:
    built = graph(("app.core", "struct"), ("app.core", "app.spark"), ("app.spark", "apple.pie"))
    assert check(built, ["app"], ["apple"]).kept


def test_everything_else_is_listed_with_its_line() -> None:
    built = graph(("app.spark", "apples"), ("app.core", "apply"), ("app.core", "apple"))
    found = check(built, ["app"], ["apple"])
    assert not found.kept
    assert found.metadata["problems"] == ["app.core:2: import apply", "app.spark:1: import apples"]


def test_what_is_left_out_may_import_anything_and_may_not_be_imported() -> None:
    built = graph(("app.spark", "apple"), ("app.core", "app.spark"))
    found = check(built, ["app"], [], without=("app.spark",))
    assert found.metadata["problems"] == ["app.core:2: import app.spark"]


def test_a_package_that_is_not_there_breaks_the_contract() -> None:
    found = check(graph(), ["app", "gone"], [])
    assert not found.kept
    assert found.metadata["problems"] == ["gone: no such module"]


def check_private(*imports: tuple[str, str]) -> list[str]:
    found = PrivateContract("the contract", {}, {"packages": ["app"]}).check(graph(*imports), verbose=False)
    assert found.kept == (not found.metadata["problems"])
    return list(found.metadata["problems"])


def test_a_private_module_is_for_its_package_and_what_lies_below_it() -> None:
    assert check_private(("app.core", "app._words"), ("app.spark", "app.spark._rows"), ("app", "app.__main__")) == []


def test_others_may_not_import_a_private_module() -> None:
    assert check_private(("app.core", "app.spark._rows"), ("app.spark", "app._words")) == [
        "app.core:1: app.spark._rows is private to app.spark"
    ]


def test_private_modules_of_others_are_their_business() -> None:
    assert check_private(("app.core", "numpy._core")) == []


def check_others(built: grimp.ImportGraph, *allowed: str) -> list[str]:
    found = ThirdPartiesContract("the contract", {}, {"allowed": list(allowed)}).check(built, verbose=False)
    assert found.kept == (not found.metadata["problems"])
    return list(found.metadata["problems"])


def test_the_longest_line_says_what_may_be_imported() -> None:
    built = graph(("app.core", "struct"), ("app.core", "numpy"), ("app.spark", "pyspark"), ("app.spark.rows", "numpy"))
    assert check_others(built, "app: numpy", "app.spark: pyspark") == ["app.spark.rows:4: import numpy"]
    assert check_others(built, "app: numpy", "app.s*: pyspark numpy") == []


def test_every_module_has_a_line_and_every_package_of_a_line_is_imported() -> None:
    built = graph(("app.core", "numpy"))
    assert check_others(built, "app.core: numpy jinja2", "app.spark:") == [
        "app.core: nothing there imports jinja2",
        "app: no line says what it may import",
    ]


PLANTED = {
    "kafka_records_tables.tables.groups": (
        "if TYPE_CHECKING:\n    from kafka_records_engine.columns._cursor import Cursor",
        "if TYPE_CHECKING:\n    from kafka_records_codegen.tree import Tree",
        "import pyspark",
        "import rich",
        "from kafka_records.consumer_offsets import decode_record",
    ),
    "kafka_records_tables.results.cells": ("import deltalake", "import kafka_records.spark"),
    "kafka_records_tables.engines.local": ("from pyspark.sql import types",),
    "kafka_records_tables.brand_new": ("import json",),
    "kafka_records_engine.log.reading._heads": ("import cryptography", "import kafka_records.enums"),
    "kafka_records_engine.columns._slots": ("import fastavro",),
    "kafka_records_engine.sources.arrow_rows": ("import pyspark.sql",),
    "kafka_records_engine.spark.decode": ("import msgspec",),
    "kafka_records_runtime.wire.walker": ("import numpy",),
    "kafka_records.consumer_offsets.offset_commit": (
        "from kafka_records.rpc._fetch_request_readers import anything",
        "import kafka_records_engine.log",
    ),
    "kafka_records.rpc.fetch_request": ("from kafka_records.rpc import metadata_response",),
    "kafka_records.rpc.metadata_response": ("from kafka_records.rpc import fetch_request",),
}

FOUND = """
- kafka_records_engine.log.reading._heads -> kafka_records.enums
- kafka_records_tables.brand_new
No cycles are allowed in kafka_records.rpc.
kafka_records.consumer_offsets.offset_commit: kafka_records.rpc._fetch_request_readers is private to kafka_records.rpc
kafka_records_tables.tables.groups: kafka_records_engine.columns._cursor is private to kafka_records_engine.columns
kafka_records.consumer_offsets.offset_commit: import kafka_records_engine.log
kafka_records_engine.log.reading._heads: import kafka_records.enums
kafka_records_tables.results.cells: import kafka_records.spark
kafka_records_tables.tables.groups: from kafka_records_codegen.tree import Tree
kafka_records_tables.tables.groups: from kafka_records.consumer_offsets import decode_record
kafka_records_engine.columns._slots: import fastavro
kafka_records_engine.log.reading._heads: import cryptography
kafka_records_engine.sources.arrow_rows: import pyspark.sql
kafka_records_engine.spark.decode: import msgspec
kafka_records_runtime.wire.walker: import numpy
kafka_records_tables.engines.local: from pyspark.sql import types
kafka_records_tables.results.cells: import deltalake
kafka_records_tables.tables.groups: import pyspark
kafka_records_tables.tables.groups: import rich
"""


def test_what_is_planted_in_the_house_is_found(tmp_path: Path) -> None:
    for folder in ("generated", "generator", "spark_udfs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.avsc"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for module, lines in PLANTED.items():
        (package,) = tmp_path.glob(f"*/{module.partition('.')[0]}")
        with (package.parent / f"{module.replace('.', '/')}.py").open("a", encoding="utf-8") as file:
            file.write("\n".join(["", *lines, ""]))
    paths = [str(tmp_path / folder) for folder in ("generated", "generator", "spark_udfs")]
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([*paths, str(ROOT)]), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    found = re.sub(r":\d+: | \(l\.\d+\)$", lambda number: ": " if number[0][0] == ":" else "", done.stdout, flags=re.M)
    unfound = set(FOUND.split("\n")) - set(found.split("\n"))
    assert not unfound, done.stdout


def test_imports_that_are_passed_over_are_for_types() -> None:
    """A cycle only of imports for types does not exist at run time; the same imports at run time would be a cycle."""
    running = grimp.build_graph(*SETTINGS["root_packages"], exclude_type_checking_imports=True, cache_dir=None)
    passed_over = [each for contract in SETTINGS["contracts"] for each in contract.get("ignore_imports", [])]
    assert passed_over
    for importers, _, imported in (each.partition(" -> ") for each in passed_over):
        found = [name for name in running.find_modules_that_directly_import(imported) if fnmatchcase(name, importers)]
        assert not found, f"{importers} -> {imported}"
