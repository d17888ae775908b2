"""Generates the registry, which looks up classes by spec name when they are needed, and the `__init__` modules of the
package."""

from __future__ import annotations

from typing import Any, Final

from kafka_records_codegen.model.messages import Folder, Model
from kafka_records_codegen.model.naming import module_name
from kafka_records_codegen.model.units import units
from kafka_records_codegen.products.lazy_packages import with_root
from kafka_records_codegen.text.mark import Mark
from kafka_records_codegen.text.page import Package, docstring, header, render, sources
from kafka_records_runtime.records.framing import METADATA

_EXPORTED: Final = frozenset(
    {
        *("RECORD_TYPES", "Record", "UnknownVersionRecord"),
        *("decode_record", "encode_record", "record_from_json"),
    }
)
"""The names in the package of a folder with records, except those of record classes."""


def generate(model: Model, package: Package) -> dict[str, str]:
    """The files `registry.py`, an `__init__.py` for every folder, and `py.typed`, which marks the package as typed."""
    messages = sorted(
        (message.name, package.module(folder.path, unit.name), message.root.python_name)
        for folder in model.folders
        for unit in units(folder)
        for message in unit.messages
    )
    files = {
        "registry.py": render(
            "registry.py.jinja",
            header=header(package, []),
            messages=messages,
            records=_records(model, package),
            apis=_apis(model),
        ),
        "py.typed": f"# {Mark('codecs', package.name).line}\n",
    }
    for folder in with_root(model):
        path = f"{folder.path}/__init__.py" if folder.path else "__init__.py"
        files[path] = _folder(folder, package)
    return files


def _records(model: Model, package: Package) -> list[tuple[str, str]]:
    """The records by name, each with its module. If two folders have a record with the same name, the one in the first
    folder is used."""
    found: dict[str, str] = {}
    for folder in model.folders:
        for record in folder.records:
            if record.key_or_none is None:  # the record has the same name as its message
                continue
            found.setdefault(record.name, package.module(folder.path, module_name(record.name)))
    return sorted(found.items())


def _apis(model: Model) -> list[dict[str, Any]]:
    """The requests by api key, each with its response."""
    responses = {message.api_key: message.name for message in model.messages if message.type == "response"}
    requests = [message for message in model.messages if message.type == "request" and message.api_key is not None]
    return [
        {
            "key": request.api_key,
            "name": request.name.removesuffix("Request"),
            "request": request.name,
            "response": repr(responses.get(request.api_key)),
            "lowest": request.versions.lowest,
            "highest": request.versions.highest,
            "flexible_from": request.flexible.lowest if request.flexible else None,
        }
        for request in sorted(requests, key=lambda request: request.api_key or 0)
    ]


def _folder(folder: Folder, package: Package) -> str:
    unknown_type = "UnknownApiKeyRecord" if folder.framing == METADATA else "UnknownTypeRecord"
    return render(
        "folder.py.jinja",
        header=header(package, sources(folder) if folder.records else []),
        docstring=docstring(_about(folder, package)),
        package=package.module(folder.path),
        is_metadata=folder.framing == METADATA,
        unknown_type=unknown_type,
        exported=sorted({*_EXPORTED, unknown_type, *(record.python_name for record in folder.records)}, key=_in_order),
        retired_types=folder.retired_types,
        records=[
            {
                "type": record.type,
                "module": module_name(record.name),
                "class": record.python_name,
                "key_class": None if record.key_or_none is None else record.key.root.python_name,
                "value_class": record.value.root.python_name,
            }
            for record in folder.records
        ],
    )


def _in_order(name: str) -> tuple[bool, bool, str]:
    """A sort key: constants before classes, and functions last."""
    return not name.isupper(), name[0].islower(), name


def _about(folder: Folder, package: Package) -> str:
    if not folder.path:
        return f"Codecs generated from message specs; `{package.name}.registry` finds them by name."
    kind = "Records" if folder.records else "Messages"
    return f"{kind} of the spec folder {folder.path}, a module each."
