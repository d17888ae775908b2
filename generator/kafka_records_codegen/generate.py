"""A run of the generator: a function from the model to `{path: text}`. `PRODUCTS` lists what it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kafka_records_codegen.model.messages import Model
from kafka_records_codegen.products import avro, enums, jvm_schemas, reference, registry, schemas, spark
from kafka_records_codegen.python import codecs
from kafka_records_codegen.text.mark import Tree
from kafka_records_codegen.text.page import Links, Package


@dataclass(frozen=True)
class Product:
    """One kind of generated file.

    `writes` are `fnmatch` patterns for the paths that it may write below the folder of its `tree`. `made_from` names
    the part of the model that determines the content of the files. `generate` returns the files: text by path.
    """

    name: str
    generate: Callable[[Model, Package], dict[str, str]]
    writes: tuple[str, ...]
    made_from: str
    tree: Tree = "codecs"


PRODUCTS: Final = (
    Product("codecs", codecs.generate, ("*.py",), "units, names, defaults, wire layouts"),
    Product("schemas", schemas.generate, ("schemas/*.py",), "units, records, schemas"),
    Product("enums", enums.generate, ("enums.py",), "enums of the notes"),
    Product("registry", registry.generate, ("registry.py", "*__init__.py", "py.typed"), "folders, units, records"),
    Product("Spark functions", spark.generate, ("spark/*.py",), "units, records, names, types"),
    Product(
        "schemas for the JVM", jvm_schemas.generate, (jvm_schemas.PATH,), "folders, records, schemas, descriptions"
    ),
    Product("Avro schemas", avro.generate, ("*.avsc",), "units, names, types, defaults"),
    Product("pages", reference.generate, ("*.md",), "pages, fields by version, wire layouts", tree="pages"),
)
"""Everything the generator writes. A new product needs a module with a function `generate`, and a line here."""


def generate(
    model: Model, package: str, docs: str | None = None, products: Iterable[Product] = PRODUCTS
) -> dict[str, str]:
    """The whole generated package for `model`, imported as `package`: text by path below it, sorted by path.

    `docs` is the folder of the reference pages as written in docstrings; without it, docstrings do not mention pages.
    """
    return _tree("codecs", model, Package(package, docs), products)


def generate_docs(model: Model, package: str, links: Links | None = None) -> dict[str, str]:
    """The reference pages for `model`: text by path below their folder, sorted by path."""
    return _tree("pages", model, Package(package, links=links or Links()), PRODUCTS)


def long_modules(files: Mapping[str, str]) -> dict[str, int]:
    """The line counts of modules that are too long to read, by path, the longest first.

    Only a message with very many fields or layouts leads to such a module.
    """
    lengths = {path: text.count("\n") for path, text in files.items() if path.endswith(".py")}
    longest_first = sorted(lengths.items(), key=lambda each: (-each[1], each[0]))
    return {path: lines for path, lines in longest_first if lines >= codecs.MOST_LINES}


def _tree(tree: Tree, model: Model, package: Package, products: Iterable[Product]) -> dict[str, str]:
    files: dict[str, str] = {}
    writers: dict[str, str] = {}
    for product in products:
        if product.tree != tree:
            continue
        for path, text in product.generate(model, package).items():
            first = writers.setdefault(path, product.name)
            if first != product.name:
                raise AssertionError(f"the products {first} and {product.name} both write {path}")
            files[path] = text
    return dict(sorted(files.items()))
