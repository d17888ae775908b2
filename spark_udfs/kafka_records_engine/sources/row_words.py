"""What rows that somebody saved may say in `control` and `transaction`: the words of a log, or yes and no.

Every row with a word in `control` is a marker, which ends a transaction and is not a record. Every word in
`transaction` but `none` says that a record is part of one. So nothing may be there that is not known: a `false` that
counts as a word makes markers of all records, and a `committed!` leaves a record out.
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
    """A row without any known content."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row
        """Its number, from 0."""


def as_controls(texts: Any, keys: Callable[[], Any]) -> Any:
    """`commit`, `abort`, and null for what is not a marker. Raises UnknownWord.

    `texts` are booleans or texts; `keys` gives the keys of the same rows as bytes, or None. A yes does not
    say which way a transaction ended; the key of a marker does.
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
                row, "control is true, but the key does not say whether it is a commit or an abort: save these words"
            )
    return pa.array(made, pa.string())


def _ending(key: bytes | None) -> str | None:
    try:
        marker = marker_of_key(key)
        return marker.control or marker.of_quorum
    except BrokenRecordsError:
        return None


def as_transactions(texts: Any) -> Any:
    """The words of `transaction`, null if nothing is told. Raises UnknownWord.

    `texts` are booleans or texts. A yes means that the record is part of a transaction, regardless of what became of
    it.
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
    """The rows that hold something, and none of these words."""
    known = pc.or_(texts.is_null(), pc.is_in(texts, words))
    found: list[int] = [] if pc.all(known).as_py() else pc.indices_nonzero(pc.invert(known)).to_pylist()
    return found
