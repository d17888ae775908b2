"""Three import-linter contracts: what a package may import from this project and from third parties, and which modules
are private.

import-linter's own `forbidden` contract lists forbidden modules, so it does not notice a new dependency. For `only` and
`third_parties`, every import outside the list is a violation; the standard library and the package's own modules are
always allowed. `private` needs no list: a leading underscore makes a module private.

Contracts check `import` statements, including those for types, but not imports by a name in a variable.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


def _within(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _listed(contract: Contract, field: str) -> list[str]:
    return [str(name) for name in getattr(contract, field)]


class OnlyContract(Contract):
    """From this project, `importers` (without `not_importers`) may import only themselves and `may_import`.

    Names stand for a module and everything below it. Only direct imports are checked. What the allowed modules import
    is up to their own contracts; for third parties there is `third_parties`.
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
                if graph.is_module_squashed(imported) or self._is_importer(imported) or _within(imported, may_import):
                    continue
                yield from _lines(graph, importer, imported)


class ThirdPartiesContract(Contract):
    """Third parties that modules may import: each line of `allowed` has a module, a colon and the packages that it may
    import.

    A line applies to the module and everything below it, except parts that have a longer line; `*` matches the rest of
    a name. Every module needs a line, and every package in a line needs a module that imports it.
    """

    type_name = "third_parties"

    allowed = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        problems = sorted(self._violations(graph))
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for problem in check.metadata["problems"]:
            output.print_error(problem)

    def _violations(self, graph: ImportGraph) -> Iterator[str]:
        allowed = {
            name: set(packages.split())
            for name, _, packages in (line.partition(":") for line in _listed(self, "allowed"))
        }
        unused = {name: set(packages) for name, packages in allowed.items()}
        by_length = sorted(allowed, key=len, reverse=True)
        for importer in graph.modules:
            if graph.is_module_squashed(importer):
                continue
            line = next((name for name in by_length if _matches(importer, name)), None)
            if line is None:
                yield f"{importer}: no line says what it may import"
                continue
            for imported in graph.find_modules_directly_imported_by(importer):
                if not graph.is_module_squashed(imported) or imported.partition(".")[0] in sys.stdlib_module_names:
                    continue
                package = imported.partition(".")[0]
                unused[line].discard(package)
                if package not in allowed[line]:
                    yield from _lines(graph, importer, imported)
        for name, packages in unused.items():
            for package in packages:
                yield f"{name}: nothing there imports {package}"


def _matches(module: str, name: str) -> bool:
    return _within(module, [name]) or ("*" in name and fnmatchcase(module, name))


def _lines(graph: ImportGraph, importer: str, imported: str) -> Iterator[str]:
    for detail in graph.get_import_details(importer=importer, imported=imported):
        yield f"{importer}:{detail['line_number']}: {detail['line_contents'].strip()}"


class PrivateContract(Contract):
    """A module whose name starts with an underscore may be imported only by modules of its own package.

    `a.b._c` is private to `a.b` and everything below it. `packages` are the packages whose modules are checked, as
    importers and as imported modules. Dunder names such as `__main__` are not private.
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
    """The package that a private module belongs to; None for a module that any other may import."""
    parts = module.split(".")
    for index, part in enumerate(parts):
        if part.startswith("_") and not part.startswith("__"):
            return ".".join(parts[:index])
    return None
