"""Generates a module with the enums from the notes of all folders, which name numbers."""

from __future__ import annotations

import textwrap
from typing import Any, Final

from kafka_records_codegen.model.messages import Model
from kafka_records_codegen.model.notes import Enum
from kafka_records_codegen.products.markdown import first_sentence
from kafka_records_codegen.spec.notes import NOTES
from kafka_records_codegen.text.page import Package, docstring, header, one_line, render
from kafka_records_codegen.text.styling import LINE_LENGTH

_INDENT: Final = 4


def generate(model: Model, package: Package) -> dict[str, str]:
    """The module, unless it would be empty."""
    folders = [folder for folder in model.folders if folder.enums]
    enums = [enum for folder in folders for enum in folder.enums]
    if not enums:
        return {}
    text = render(
        "enums.py.jinja",
        header=header(package, [f"{folder.path}/{NOTES}".lstrip("/") for folder in folders]),
        enums=[_enum(enum) for enum in enums],
        exported=sorted(enum.name for enum in enums),
    )
    return {"enums.py": text}


def _enum(enum: Enum) -> dict[str, Any]:
    return {
        "name": enum.name,
        "docstring": _about(enum.about),
        "members": [
            {"name": value.name, "value": value.value, "about": docstring(one_line(value.about), _INDENT)}
            for value in enum.values
        ],
    }


def _about(text: str) -> str:
    """The first sentence, followed by the other sentences as a separate paragraph."""
    whole = one_line(text)
    first = first_sentence(whole)
    rest = textwrap.fill(whole.removeprefix(first).strip(), LINE_LENGTH - _INDENT)
    return docstring(f"{first}\n\n{rest}", _INDENT) + (f"\n{' ' * _INDENT}" if rest else "")
