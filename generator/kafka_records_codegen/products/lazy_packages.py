"""Generates packages with a module per record or message. Each module is imported when one of its names is first
used."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

from kafka_records_codegen.model.messages import Folder, Model
from kafka_records_codegen.model.units import Unit, pages, units
from kafka_records_codegen.text.page import Package, docstring, header, render, sources


@dataclass(frozen=True)
class LazyPackages:
    """What the packages of one product have in common. `generate` writes one package per folder of specs."""

    name: str
    """The package, below the generated one, that contains all packages of this product."""
    contents: str
    """The description of the content in docstrings."""
    module: Callable[[Folder, Unit, Package, str], str]
    """The text of a module, which refers to the reference page with this path."""
    exported: Callable[[Unit], list[str]]
    """The names that a module exports, sorted."""
    records_module: str
    """The name of an extra module in folders with records. No message can have this name, because names in specs start
    with a letter."""
    records_text: Callable[[Folder, Package], str]
    records_exported: tuple[str, ...]

    def generate(self, model: Model, package: Package) -> dict[str, str]:
        """All modules, by path below the generated package, and the packages that contain them."""
        files = {}
        for folder in with_root(model):
            home = posixpath.join(self.name, folder.path).rstrip("/")
            files[f"{home}/__init__.py"] = self._package(folder, package)
            if folder.records:
                files[f"{home}/{self.records_module}.py"] = self.records_text(folder, package)
            for page in pages(folder):
                for unit in page.units:
                    files[f"{home}/{unit.name}.py"] = self.module(folder, unit, package, page.path)
        return files

    def _package(self, folder: Folder, package: Package) -> str:
        modules = [{"name": unit.name, "exported": self.exported(unit)} for unit in units(folder)]
        if folder.records:
            modules.append({"name": self.records_module, "exported": [*self.records_exported]})
        modules.sort(key=itemgetter("name"))
        about = f"{self.contents} of {folder.path or 'the messages at the top of the specs'}"
        if modules:
            about += f": a module per {'record' if folder.records else 'message'}, imported when first needed"
        return render(
            "exports.py.jinja",
            header=header(package, sources(folder)),
            docstring=docstring(f"{about}."),
            package=package.module(self.name, folder.path),
            modules=modules,
            exported=sorted(name for module in modules for name in module["exported"]),
        )


def with_root(model: Model) -> list[Folder]:
    """All folders, plus empty ones for the top and for intermediate folders without specs."""
    found = {folder.path: folder for folder in model.folders}
    found.setdefault("", Folder("", (), ()))
    for path in list(found):
        parts = path.split("/")
        for depth in range(len(parts)):
            found.setdefault("/".join(parts[:depth]), Folder("/".join(parts[:depth]), (), ()))
    return [found[path] for path in sorted(found)]
