"""The text form of our specs: functions to write a spec and to read it again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Any, Final

Json = dict[str, Any]

_WIDTH: Final = 100
_TOKEN: Final = re.compile(r'\s*(?:"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+)')
"""A JSON token with the blanks before it."""

MESSAGE_ATTRIBUTES: Final = (
    *("apiKey", "type", "listeners", "name", "validVersions", "deprecatedVersions", "flexibleVersions"),
    "latestVersionUnstable",
)
FIELD_ATTRIBUTES: Final = (
    *("name", "type", "versions", "nullableVersions", "flexibleVersions", "tag", "taggedVersions", "default"),
    *("ignorable", "mapKey", "zeroCopy", "entityType"),
)


def split_head(text: str) -> tuple[str, str]:
    """The comment at the start of a spec, with its line break, and the rest."""
    lines = text.splitlines(keepends=True)
    count = next((number for number, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return "".join(lines[:count]), "".join(lines[count:])


def spec_text(head: str, spec: Mapping[str, Any]) -> str:
    """A spec file: the comment at its head, then the message, with one line for the attributes about bytes, and one for
    the description."""
    lines = ["{", *(f'  "{name}": {_value(spec[name])},' for name in MESSAGE_ATTRIBUTES if name in spec)]
    lines += _list("fields", [_field(field, "    ") for field in spec["fields"]], "  ")
    if spec.get("commonStructs"):
        lines[-1] += ","
        lines += _list("commonStructs", [_struct(struct) for struct in spec["commonStructs"]], "  ")
    return head + "\n".join([*lines, "}", ""])


def changed_text(body: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The text of a spec, without its head, after a change from `before` to `now`.

    Only changed parts are rewritten. If attributes are in another order than in this form, everything is rewritten.
    """
    form, wanted = (spec_text("", spec) for spec in (before, now))
    written = _TOKEN.findall(body)
    if list(map(str.strip, written)) != list(map(str.strip, _TOKEN.findall(form))):
        return wanted
    old, new = (text.rstrip().split("\n") for text in (form, wanted))
    begins = [0, *accumulate(len(_TOKEN.findall(line)) for line in old)]
    text = ""
    for what, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            text += "".join(written[begins[start] : begins[end]])
        else:
            text += "".join(f"\n{line}" for line in new[first:last])
    return text + "\n"


def _struct(struct: Mapping[str, Any]) -> list[str]:
    start = f'    {{ "name": {_value(struct["name"])}, "versions": {_value(struct["versions"])}, "fields": ['
    return [start, *_joined([_field(field, "      ") for field in struct["fields"]]), "    ] }"]


def _field(field: Mapping[str, Any], indent: str) -> list[str]:
    parts = [f'"{name}": {_value(field[name])}' for name in FIELD_ATTRIBUTES if name in field]
    lines = list(_wrapped(parts, indent))
    lines.append(f'{indent}  "about": {_value(field["about"])}')
    if field.get("fields"):
        lines[-1] += ","
        inner = [_field(each, f"{indent}    ") for each in field["fields"]]
        lines += _list("fields", inner, f"{indent}  ")
    lines[-1] += " }"
    return lines


def _list(name: str, items: Sequence[list[str]], indent: str) -> list[str]:
    if not items:
        return [f'{indent}"{name}": []']
    return [f'{indent}"{name}": [', *_joined(items), f"{indent}]"]


def _joined(items: Sequence[list[str]]) -> Iterator[str]:
    for number, item in enumerate(items, start=1):
        yield from item[:-1]
        yield item[-1] + ("," if number < len(items) else "")


def _wrapped(parts: Sequence[str], indent: str) -> Iterator[str]:
    line = f"{indent}{{ "
    for number, part in enumerate(parts):
        part += ","
        if number and len(line) + 1 + len(part) > _WIDTH:
            yield line
            line = f"{indent}  {part}"
        else:
            line += f" {part}" if number else part
    yield line


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
