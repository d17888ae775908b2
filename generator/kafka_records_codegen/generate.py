"""A run of the generator is a function from the model to `{path: text}`."""

from __future__ import annotations

from kafka_records_codegen.model.messages import Model
from kafka_records_codegen.products import avro, enums, reference, registry, schemas, spark
from kafka_records_codegen.products.reference import Links
from kafka_records_codegen.python import codecs
from kafka_records_codegen.text.page import Package

_BACK_ENDS = (codecs, schemas, enums, registry, spark, avro)


def generate(model: Model, package: str, docs: str | None = None) -> dict[str, str]:
    """The whole generated package for `model`, imported as `package`: path below it → text, sorted by path.

    `docs` is the folder of the reference pages as docstrings should name it; without it they name none.
    """
    files: dict[str, str] = {}
    for back_end in _BACK_ENDS:
        made = back_end.generate(model, Package(package, docs))
        clash = files.keys() & made.keys()
        if clash:
            raise AssertionError(f"two back ends write {', '.join(sorted(clash))}")
        files |= made
    return dict(sorted(files.items()))


def generate_docs(model: Model, package: str, links: Links | None = None) -> dict[str, str]:
    """The reference pages for `model`: path below their folder → text, sorted by path."""
    return dict(sorted(reference.generate(model, Package(package), links or Links()).items()))
