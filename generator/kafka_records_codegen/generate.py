"""A run of the generator is a function from the model to `{path: text}`."""

from __future__ import annotations

from kafka_records_codegen.backends import codecs, registry, schemas, spark
from kafka_records_codegen.backends.page import Package
from kafka_records_codegen.model import Model

_BACK_ENDS = (codecs, schemas, registry, spark)


def generate(model: Model, package: str) -> dict[str, str]:
    """The whole generated tree for `model`, imported as `package`: path below the package → text, sorted by path."""
    files: dict[str, str] = {}
    for back_end in _BACK_ENDS:
        made = back_end.generate(model, Package(package))
        clash = files.keys() & made.keys()
        if clash:
            raise AssertionError(f"two back ends write {', '.join(sorted(clash))}")
        files |= made
    return dict(sorted(files.items()))
