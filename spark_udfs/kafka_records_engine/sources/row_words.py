"""The allowed values of `control` and `transaction` in saved rows: the values of a log, or booleans.

Every row with a value in `control` is a marker, which ends a transaction and is not a record. Every value in
`transaction` except `none` means that the record is part of one. Unknown values are rejected, because otherwise a
`false` in `control` would turn a record into a marker, and a `committed!` in `transaction` would hide a record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.log.format.batches import BrokenRecordsError
from kafka_records_engine.log.format.control_records import marker_of_key
from kafka_records_engine.log.reading.raw_rows import CONTROLS, TRANSACTIONS

_CONTROLS: Final = pa.array(CONTROLS)
_TRANSACTIONS: Final = pa.array(TRANSACTIONS)


class UnknownWord(ValueError):
    """A row has an unknown value."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row
        """The number of the row, starting at 0."""


def as_controls(texts: Any, keys: Callable[[], Any]) -> Any:
    """The values `commit` and `abort`, and null for rows that are not markers. Raises UnknownWord.

    `texts` are booleans or strings; `keys` returns the keys of the same rows as bytes, or None. If the value is true,
    the key of the marker says how the transaction ended.
    """
    if pa.types.is_boolean(texts.type):
        texts = pc.if_else(texts, "true", pa.scalar(None, pa.string()))
    if not _others(texts, _CONTROLS):
        return texts
    plain = pc.utf8_lower(texts)
    texts = pc.if_else(pc.is_in(plain, pa.array(["", "false"])), pa.scalar(None, pa.string()), texts)
    others = _others(texts, _CONTROLS)
    if not others:
        return texts
    told, made = keys(), texts.to_pylist()
    for row in others:
        if made[row].lower() != "true":
            known = f"{', '.join(CONTROLS)}, true for any marker, and nothing for records"
            raise UnknownWord(row, f"control is {made[row]!r}: it must be one of {known}")
        made[row] = None if told is None else _ending(told[row].as_py())
        if made[row] is None:
            raise UnknownWord(
                row, "control is true, but the key does not show which marker it is: write commit or abort"
            )
    return pa.array(made, pa.string())


def _ending(key: bytes | None) -> str | None:
    try:
        marker = marker_of_key(key)
        return marker.control or marker.of_quorum
    except BrokenRecordsError:
        return None


def as_transactions(texts: Any) -> Any:
    """The values of `transaction`; null if unknown. Raises UnknownWord.

    `texts` are booleans or strings. True means that the record is part of a transaction with any outcome.
    """
    if pa.types.is_boolean(texts.type):
        return pc.if_else(texts, "pending", "none")
    if not _others(texts, _TRANSACTIONS):
        return texts
    plain = pc.utf8_lower(texts)
    for word, meaning in (("true", "pending"), ("false", "none"), ("", None)):
        texts = pc.if_else(pc.equal(plain, word), pa.scalar(meaning, pa.string()), texts)
    others = _others(texts, _TRANSACTIONS)
    if others:
        known = f"{', '.join(TRANSACTIONS)}, true or false"
        raise UnknownWord(others[0], f"transaction is {texts[others[0]].as_py()!r}: it must be one of {known}")
    return texts


def _others(texts: Any, words: Any) -> Sequence[int]:
    """Flags for rows whose value is neither null nor one of these words."""
    known = pc.or_(texts.is_null(), pc.is_in(texts, words))
    found: list[int] = [] if pc.all(known).as_py() else pc.indices_nonzero(pc.invert(known)).to_pylist()
    return found
