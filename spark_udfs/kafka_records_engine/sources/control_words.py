"""What rows that somebody saved may say in `control`: the words of a log, or yes and no.

Every row with a word in this column is a marker, which ends a transaction and is no record. So nothing may stand in it
that is not known: a `false` that counts as a word makes markers of all records.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_KEY: Final = Struct(">hh")
_KINDS: Final = {1: "commit", 0: "abort"}
"""Kafka's ControlRecordType: what stands in the key of a marker, behind a version."""
_WORDS: Final = tuple(_KINDS.values())


class UnknownControl(ValueError):
    """A row whose `control` says nothing that is known."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row
        """Its number, from 0."""


def as_controls(texts: Any, keys: Callable[[], Any]) -> Any:
    """`commit`, `abort`, and null for what is no marker. Raises UnknownControl.

    `texts` are booleans or texts; `keys` gives the keys of the same rows as bytes, or None. A yes does not
    say which way a transaction ended; the key of a marker does.
    """
    if pa.types.is_boolean(texts.type):
        texts = pc.if_else(texts, "true", pa.scalar(None, pa.string()))
    words = pa.array(_WORDS)
    if pc.all(pc.or_(texts.is_null(), pc.is_in(texts, words))).as_py():
        return texts
    plain = pc.utf8_lower(texts)
    texts = pc.if_else(pc.is_in(plain, pa.array(["", "false"])), pa.scalar(None, pa.string()), texts)
    others = pc.indices_nonzero(pc.and_(texts.is_valid(), pc.invert(pc.is_in(texts, words)))).to_pylist()
    if not others:
        return texts
    told, made = keys(), texts.to_pylist()
    for row in others:
        if made[row].lower() != "true":
            known = f"{' or '.join(_WORDS)}, true for any marker, and nothing for records"
            raise UnknownControl(row, f"control is {made[row]!r}: it holds {known}")
        made[row] = None if told is None else _kind(told[row].as_py())
        if made[row] is None:
            raise UnknownControl(
                row, "control is true, and the key does not say that it is a commit or an abort: save these words"
            )
    return pa.array(made, pa.string())


def _kind(key: bytes | None) -> str | None:
    if key is None or len(key) < _KEY.size:
        return None
    version, kind = _KEY.unpack_from(key)
    return _KINDS.get(kind) if version >= 0 else None
