"""JSON lines: one object per line.

The first lines determine the columns. A column that raw rows need may be missing or null in these lines; for example,
the first marker of a log only appears after a transaction. So later lines are searched for the names of such columns.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._saved.tabular import Sequential
from kafka_records_engine.sources._saved.taken_columns import plain, plain_names, raw_name, type_of
from kafka_records_engine.sources._saved.text_lines import blocks_of_lines, first_lines

_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_SEPARATED: Final = r'[^A-Za-z0-9"]*'
"""Characters that may be between the letters of a name; see `plain`."""


class JsonReader(Sequential):
    """See `FileReader`.

    `asked` are columns that the caller named, which may be members of columns. With `known` columns, the file is not
    inspected before it is read.
    """

    def __init__(self, place: Place, asked: Collection[str] = (), known: Mapping[str, Any] | None = None) -> None:
        self._place = place
        self.fields: dict[str, Any] = dict(known or {})
        if known is None:
            for number, line in enumerate(first_lines(place)):
                if line.strip():
                    self._add(self._row(line, number))
            self._add_late(asked)

    def _add(self, row: Mapping[str, Any]) -> None:
        for name, value in row.items():
            kind = _json_type(value, self.fields.get(name))
            if kind is not None:
                self.fields[name] = kind
            else:
                self.fields.setdefault(name, pa.null())

    def _add_late(self, asked: Collection[str]) -> None:
        first = 0
        pattern = late_names(self.fields, asked)
        for block in blocks_of_lines(self._place) if pattern else ():
            if pattern and pc.match_substring_regex(pa.array([block]), pattern)[0].as_py():
                pattern = self._add_late_of(block.split(b"\n"), first, pattern, asked)
            first += block.count(b"\n")

    def _add_late_of(self, lines: Sequence[bytes], first: int, pattern: str, asked: Collection[str]) -> str:
        """Add the columns of lines that contain one of the names. Returns the pattern to search for in the following
        lines."""
        at = 0
        while at < len(lines):
            for hit in pc.indices_nonzero(pc.match_substring_regex(pa.array(lines[at:]), pattern)).to_pylist():
                row = self._row(lines[at + hit], first + at + hit)
                self._add({name: value for name, value in row.items() if _is_open(self.fields.get(name))})
                narrower = late_names(self.fields, asked)
                if narrower != pattern:
                    at, pattern = at + hit + 1, narrower
                    break
            else:
                return pattern
        return pattern

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            row = json.loads(line.decode("utf-8", "surrogateescape"), object_pairs_hook=_with_names)
        except ValueError as error:
            raise LogSourceError(str(self._place), self._no_json(line, number, str(error))) from None
        if not isinstance(row, dict):
            what = "is not a JSON object: each row is one object on a line"
            how = "; jq -c '.[]' makes lines of an array" if isinstance(row, list) else ""
            raise LogSourceError(str(self._place), f"line {number + 1} {what}{how}")
        return row

    @staticmethod
    def _no_json(line: bytes, number: int, error: str) -> str:
        text = f"line {number + 1} is not JSON: {error}"
        if number == 0 and line.lstrip()[:1] in (b"{", b"["):
            way = ".[]" if line.lstrip()[:1] == b"[" else "."
            text += f"; rows are an object per line, which jq -c '{way}' makes of other JSON"
        return text

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        """See `FileReader`."""
        import pyarrow.json as pj

        names = list(dict.fromkeys(name.partition(".")[0] if name not in self.fields else name for name in columns))
        # Read strings as bytes, because kcat writes bytes unchanged, so they need not be valid UTF-8.
        schema = pa.schema([(name, _unchecked(self.fields[name])) for name in names])
        options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        first = line = 0
        for block in blocks_of_lines(self._place):
            reading = pj.ReadOptions(use_threads=False, block_size=len(block) + 1)
            try:
                table = pj.read_json(io.BytesIO(block), reading, options)
            except pa.ArrowException as error:
                self._complain(block, line, names, str(error))
            for batch in table.select(names).combine_chunks().to_batches():
                yield first, batch
                first += batch.num_rows
            line += block.count(b"\n")

    def _complain(self, block: bytes, first: int, names: Sequence[str], told: str) -> None:
        """Raise LogSourceError with the number of the line that Arrow could not read. Arrow does not report it."""
        for number, line in enumerate(block.split(b"\n"), first):
            if not line.strip():
                continue
            row = self._row(line, number)
            for name in names:
                kind, was = _json_type(row.get(name), None), self.fields[name]
                if kind is not None and kind != was and not (pa.types.is_floating(was) and pa.types.is_integer(kind)):
                    what = f"the column {name} of line {number + 1} is {kind}, and {was} in earlier lines"
                    raise LogSourceError(str(self._place), what)
        raise LogSourceError(str(self._place), f"after line {first} the text is not JSON: {told}")


def _with_names(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The object without members whose names are not UTF-8. Arrow does not support such columns."""
    return {name: value for name, value in pairs if name.isascii() or not _SURROGATES.search(name)}


def late_names(fields: Mapping[str, Any], asked: Collection[str]) -> str:
    """A pattern for lines that may contain a column that raw rows need but that is missing or always null in `fields`.
    It is empty if there is nothing to search for. Members of other columns may have the same name.
    """
    known = {plain(name) for name in fields}
    absent = [_SEPARATED.join(name) for name in plain_names() if name not in known]
    null = [re.escape(name) for name, kind in fields.items() if pa.types.is_null(kind) and raw_name(name)]
    for column in asked:
        kind = type_of(column, fields)
        if kind is None:
            absent.append(re.escape(column.rpartition(".")[2]))
        elif pa.types.is_null(kind):
            null.append(re.escape(column.rpartition(".")[2]))
    parts = [f'(?i:"{_SEPARATED}(?:{"|".join(absent)}){_SEPARATED}"\\s*:)'] if absent else []
    return "|".join([*parts, *([f'"(?:{"|".join(null)})"\\s*:\\s*[^n\\s]'] if null else [])])


def _is_open(kind: Any) -> bool:
    """Whether later values may still refine the type of a column."""
    return kind is None or bool(pa.types.is_null(kind) or pa.types.is_struct(kind))


def _json_type(value: Any, known: Any) -> Any:
    """The type of a value, given the type of earlier values. None for null, which implies no type."""
    if value is None:
        return None
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.float64() if known == pa.float64() else pa.int64()
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, list):
        return pa.list_(pa.null())
    inner = {field.name: field.type for field in known} if known and pa.types.is_struct(known) else {}
    for name, item in value.items():
        kind = _json_type(item, inner.get(name))
        inner[name] = inner.get(name, pa.null()) if kind is None else kind
    return pa.struct(list(inner.items()))


def _unchecked(kind: Any) -> Any:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _unchecked(field.type)) for field in kind])
    return pa.binary() if pa.types.is_string(kind) else kind
