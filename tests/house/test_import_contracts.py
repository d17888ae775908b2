"""The import-linter contracts of tools/import_contracts.py on small graphs."""

from __future__ import annotations

import grimp
from importlinter import ContractCheck

from tools.import_contracts import OnlyContract, PrivateContract


def graph(*imports: tuple[str, str]) -> grimp.ImportGraph:
    built = grimp.ImportGraph()
    for name in ("app", "app.core", "app.spark"):
        built.add_module(name)
    for number, (importer, imported) in enumerate(imports, start=1):
        built.add_module(imported)
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


def test_itself_the_standard_library_and_the_list_are_allowed() -> None:
    built = graph(("app.core", "struct"), ("app.core", "app.spark"), ("app.spark", "numpy"))
    assert check(built, ["app"], ["numpy"]).kept


def test_everything_else_is_listed_with_its_line() -> None:
    built = graph(("app.spark", "numpyro"), ("app.core", "jinja2"), ("app.core", "numpy"))
    found = check(built, ["app"], ["numpy"])
    assert not found.kept
    assert found.metadata["problems"] == ["app.core:2: import jinja2", "app.spark:1: import numpyro"]


def test_what_is_left_out_may_import_anything_and_may_not_be_imported() -> None:
    built = graph(("app.spark", "pyspark"), ("app.core", "app.spark"))
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
