"""Decodes bytes that were saved as strings: base64, hex digits, or the bytes unchanged."""

from __future__ import annotations

import binascii
from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS
from kafka_records_engine.sources.plain_arrays import plain_array

Encoding = Literal["base64", "hex", "text"]
ENCODINGS: Final[tuple[Encoding, ...]] = ("base64", "hex", "text")
"""`text` means that the string contains the bytes unchanged, as `kcat -J` writes them."""

_HEX_PREFIXES: Final = ("\\x", "0x", "0X")
_LOST: Final = "\ufffd".encode()
"""U+FFFD, which decoders insert for bytes that are not UTF-8."""
_ENOUGH: Final = 48
"""This many base64 characters practically always include some that are not hex digits, because only 22 of the 64
characters are."""
_MOST: Final = 0.9
"""The share of strings that must fit an encoding for it to be chosen. Plain text does not fit base64 or hex that
often."""

_HEX_DIGITS: Final = b"0123456789abcdefABCDEF"
_SIXES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="
_FILLER: Final = ord("=")
_PLAIN: Final = bytes.maketrans(b"-_=", b"+/A")
"""Translates URL-safe base64 to standard base64, and padding to characters with the value 0."""


class Undecided(Exception):
    """The encoding of strings cannot be determined; the message says why."""


class TooFew(Undecided):
    """The strings could be base64 or hex. Deciding requires more strings."""


def encoding_of(samples: Iterable[Any]) -> Encoding | None:
    """Determine from a sample (Arrow arrays) how strings encode bytes. None if the sample has no strings.

    If a few strings do not fit the encoding of the others, then either these few are damaged, or all strings are
    unchanged bytes. Both possibilities are considered. Raises Undecided.
    """
    texts = _different(samples)
    if not len(texts):
        return None
    bare = _without_prefix(texts)
    hexes, sixes = _fitting(bare, "hex"), _fitting(texts, "base64")
    if hexes.mean() >= _MOST:
        if bare is texts and sixes.mean() >= _MOST and _characters(texts.filter(pa.array(hexes))) < _ENOUGH:
            raise TooFew("could be base64 or hex: there are too few values to tell")
        return "hex"
    if sixes.mean() >= _MOST:
        return "base64"
    if pc.any(pc.match_substring(texts, pattern=_LOST)).as_py():
        raise Undecided("contain U+FFFD, which decoders write in place of invalid bytes: the original bytes are lost")
    for encoding, fitting in (("hex", hexes), ("base64", sixes)):
        if fitting.mean() > 1 - _MOST:
            raise Undecided(f"are {encoding} in {fitting.sum()} of {len(texts)} that were examined")
    return "text"


def is_enough(samples: Iterable[Any]) -> bool:
    """Whether the sample is large enough to decide."""
    return _characters(_different(samples)) >= _ENOUGH


def _different(samples: Iterable[Any]) -> Any:
    parts = [*(as_binary(each).drop_null() for each in samples), pa.array([], pa.large_binary())]
    texts = pc.unique(pa.concat_arrays(parts))
    return texts.filter(pc.greater(pc.binary_length(texts), 0))


def _characters(texts: Any) -> int:
    return int(pc.sum(pc.binary_length(texts)).as_py() or 0)


def _fitting(texts: Any, encoding: Encoding) -> FLAGS:
    """The rows whose string fits the encoding."""
    wrong = _wrong(texts, encoding)
    fitting: FLAGS = np.ones(len(texts), np.bool_) if wrong is None else ~wrong
    return fitting


class Decoded(NamedTuple):
    """Decoded bytes. A row is null if it has no string, or a string that cannot be decoded."""

    array: Any
    wrong: FLAGS | None
    """Flags for the rows whose string does not fit the encoding; None if there are none."""


def decoded(array: Any, encoding: Encoding) -> Decoded:
    """A `pa.binary()` array with the decoded strings."""
    texts = as_binary(array)
    if encoding == "text":
        return Decoded(texts.cast(pa.binary()), None)
    if encoding == "hex":
        texts = _without_prefix(texts)
    wrong = _wrong(texts, encoding)
    if wrong is not None:
        texts = pc.if_else(pa.array(wrong), pa.scalar(None, texts.type), texts)
    return Decoded(_unhexed(texts) if encoding == "hex" else _unbased(texts), wrong)


def _wrong(texts: Any, encoding: Encoding) -> FLAGS | None:
    """The rows whose text does not fit the encoding; None if there are none."""
    content, offsets = _content(texts)
    lengths = np.diff(offsets)
    odd = lengths % 2 == 1 if encoding == "hex" else lengths % 4 == 1
    alphabet = _HEX_DIGITS if encoding == "hex" else _SIXES
    strange = np.zeros(0, np.int64)
    if content.tobytes().translate(None, alphabet):
        strange = np.flatnonzero(~np.isin(content, np.frombuffer(alphabet, np.uint8)))
    if encoding == "base64":
        fillers = np.flatnonzero(content == _FILLER)
        rows = np.searchsorted(offsets, fillers, side="right") - 1
        # Only the last two of four characters may be padding, and the third only if the fourth is.
        left = offsets[rows + 1] - fillers
        alone = (left == 2) & (content[np.minimum(fillers + 1, max(len(content) - 1, 0))] != _FILLER)
        strange = np.concatenate([strange, fillers[(left > 2) | alone | (lengths[rows] % 4 != 0)]])
    if not odd.any() and not len(strange):
        return None
    odd[np.searchsorted(offsets, strange, side="right") - 1] = True
    wrong: FLAGS = odd
    return wrong


def as_binary(array: Any) -> Any:
    """A `pa.large_binary()` array with the bytes of strings or bytes of any Arrow type. (Arrow validates UTF-8 when it
    converts bytes to strings, but not in this direction.)"""
    return plain_array(array).cast(pa.large_binary())


def _without_prefix(texts: Any) -> Any:
    if not any(pc.any(pc.starts_with(texts, pattern=each)).as_py() for each in _HEX_PREFIXES):
        return texts
    return pc.replace_substring_regex(texts, pattern=r"^(\\x|0[xX])", replacement="")


def _unhexed(texts: Any) -> Any:
    content, offsets = _content(texts)
    return _binary(binascii.unhexlify(content), offsets // 2, texts)


def _unbased(texts: Any) -> Any:
    lengths = pc.binary_length(texts)
    left = pc.bit_wise_and(lengths, 3)
    if pc.any(pc.not_equal(left, 0)).as_py():
        filler = pc.if_else(pc.equal(left, 2), b"==", pc.if_else(pc.equal(left, 3), b"=", b"")).cast(pa.large_binary())
        texts = pc.binary_join_element_wise(texts, filler, pa.scalar(b"", pa.large_binary()))
    content, offsets = _content(texts)
    ends = offsets[1:][offsets[1:] > offsets[:-1]]
    padding = np.zeros(len(offsets) - 1, np.int64)
    padding[offsets[1:] > offsets[:-1]] = (content[ends - 1] == _FILLER).astype(np.int64) + (
        content[ends - 2] == _FILLER
    )
    # All values form one long base64 text, because the length of each is a multiple of four.
    data = binascii.a2b_base64(content.tobytes().translate(_PLAIN))
    behind = offsets // 4 * 3
    if padding.any():
        kept = np.ones(len(data), np.bool_)
        kept[behind[1:][padding >= 1] - 1] = False
        kept[behind[1:][padding == 2] - 2] = False
        data = np.frombuffer(data, np.uint8)[kept].tobytes()
        behind = behind - np.concatenate([[0], np.cumsum(padding)])
    return _binary(data, behind, texts)


def _content(texts: Any) -> tuple[Any, Any]:
    """The characters of all strings, concatenated, and where each string begins."""
    if texts.null_count:
        texts = texts.fill_null(b"")
    buffer = texts.buffers()[2]
    offsets = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, texts.offset * 8)
    content = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(0, np.uint8)
    return content[offsets[0] : offsets[-1]], offsets - offsets[0]


def _binary(data: bytes, offsets: Any, texts: Any) -> Any:
    made = pa.Array.from_buffers(
        pa.large_binary(),
        len(offsets) - 1,
        [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int64)), pa.py_buffer(data)],
    ).cast(pa.binary())
    return pc.if_else(texts.is_valid(), made, pa.scalar(None, pa.binary())) if texts.null_count else made
