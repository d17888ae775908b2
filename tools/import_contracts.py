"""An import-linter contract that names what a package may import, rather than what it may not.

import-linter's own `forbidden` contract lists the modules to keep out, so a new dependency slips in unseen.
Here everything outside the list is a violation; the standard library and the package's own modules are always
allowed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


def _within(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


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
        missing = [name for name in self._names("importers") if name not in graph.modules]
        if missing:
            return ContractCheck(kept=False, metadata={"problems": [f"{name}: no such module" for name in missing]})
        problems = sorted(self._violations(graph))
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for problem in check.metadata["problems"]:
            output.print_error(problem)

    def _names(self, field: str) -> list[str]:
        return [str(name) for name in getattr(self, field)]

    def _is_importer(self, module: str) -> bool:
        return _within(module, self._names("importers")) and not _within(module, self._names("not_importers"))

    def _violations(self, graph: ImportGraph) -> Iterator[str]:
        may_import = self._names("may_import")
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
