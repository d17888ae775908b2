"""Two import-linter contracts: what a package may import, and which modules are private.

import-linter's own `forbidden` contract lists the modules to keep out, so a new dependency slips in unseen.
In `only` every import outside the list is a violation; the standard library and the package's own modules are always
allowed. `private` needs no list: a leading underscore makes a module private.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


def _within(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _listed(contract: Contract, field: str) -> list[str]:
    return [str(name) for name in getattr(contract, field)]


class OnlyContract(Contract):
    """`importers`, without `not_importers`, import only themselves, the standard library and `may_import`.

    Names stand for a module and everything below it. Direct imports are looked at; what the allowed modules
    import in turn is the business of their own contracts.
    """

    type_name = "only"

    importers = fields.ListField(subfield=fields.StringField())
    not_importers = fields.ListField(subfield=fields.StringField(), required=False, default=[])
    may_import = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        missing = [name for name in _listed(self, "importers") if name not in graph.modules]
        if missing:
            return ContractCheck(kept=False, metadata={"problems": [f"{name}: no such module" for name in missing]})
        problems = sorted(self._violations(graph))
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for problem in check.metadata["problems"]:
            output.print_error(problem)

    def _is_importer(self, module: str) -> bool:
        return _within(module, _listed(self, "importers")) and not _within(module, _listed(self, "not_importers"))

    def _violations(self, graph: ImportGraph) -> Iterator[str]:
        may_import = _listed(self, "may_import")
        for importer in filter(self._is_importer, graph.modules):
            for imported in graph.find_modules_directly_imported_by(importer):
                if (
                    self._is_importer(imported)
                    or imported.partition(".")[0] in sys.stdlib_module_names
                    or _within(imported, may_import)
                ):
                    continue
                for detail in graph.get_import_details(importer=importer, imported=imported):
                    yield f"{importer}:{detail['line_number']}: {detail['line_contents'].strip()}"


class PrivateContract(Contract):
    """A module whose name starts with an underscore is imported by modules of its own package alone.

    `a.b._c` is for `a.b` and everything below it. `packages` are those whose modules are looked at, as importers and as
    imported; dunder names such as `__main__` are not private.
    """

    type_name = "private"

    packages = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        problems = sorted(self._violations(graph, _listed(self, "packages")))
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for problem in check.metadata["problems"]:
            output.print_error(problem)

    def _violations(self, graph: ImportGraph, packages: list[str]) -> Iterator[str]:
        for imported in graph.modules:
            home = _private_home(imported)
            if home is None or not _within(imported, packages):
                continue
            for importer in graph.find_modules_that_directly_import(imported):
                if not _within(importer, [home]):
                    for detail in graph.get_import_details(importer=importer, imported=imported):
                        yield f"{importer}:{detail['line_number']}: {imported} is private to {home}"


def _private_home(module: str) -> str | None:
    """The package that a private module belongs to; None for one that anybody may import."""
    parts = module.split(".")
    for index, part in enumerate(parts):
        if part.startswith("_") and not part.startswith("__"):
            return ".".join(parts[:index])
    return None
