"""JSON, an object per line. The first lines say which columns there are."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from kafka_records_engine.log.places import LogSourceError, Place
from kafka_records_engine.sources._saved.tabular import Sequential
from kafka_records_engine.sources._saved.text_lines import blocks_of_lines, first_lines


class JsonReader(Sequential):
    """See `FileReader`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.fields: dict[str, Any] = {}
        for number, line in enumerate(first_lines(place)):
            row = self._row(line, number)
            for name, value in row.items():
                kind = _json_type(value, self.fields.get(name))
                if kind is not None:
                    self.fields[name] = kind
                else:
                    self.fields.setdefault(name, pa.null())

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            row = json.loads(line.decode("utf-8", "surrogateescape"))
        except ValueError as error:
            raise LogSourceError(str(self._place), self._no_json(line, number, str(error))) from None
        if not isinstance(row, dict):
            what = "is no JSON object: rows are an object per line"
            how = "; jq -c '.[]' makes lines of an array" if isinstance(row, list) else ""
            raise LogSourceError(str(self._place), f"line {number + 1} {what}{how}")
        return row

    @staticmethod
    def _no_json(line: bytes, number: int, error: str) -> str:
        text = f"line {number + 1} is no JSON: {error}"
        if number == 0 and line.lstrip()[:1] in (b"{", b"["):
            way = ".[]" if line.lstrip()[:1] == b"[" else "."
            text += f"; rows are an object per line, which jq -c '{way}' makes of other JSON"
        return text

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        """See `FileReader`."""
        import pyarrow.json as pj

        names = list(dict.fromkeys(name.partition(".")[0] if name not in self.fields else name for name in columns))
        # Texts are read as bytes: kcat writes bytes as they are, and no checker of UTF-8 may stand in the way.
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
        """Raise LogSourceError for the line that Arrow could not read: it does not say which one that is."""
        for number, line in enumerate(block.split(b"\n"), first):
            if not line.strip():
                continue
            row = self._row(line, number)
            for name in names:
                kind, was = _json_type(row.get(name), None), self.fields[name]
                if kind is not None and kind != was and not (pa.types.is_floating(was) and pa.types.is_integer(kind)):
                    what = f"the column {name} of line {number + 1} is {kind}, and {was} in the lines before"
                    raise LogSourceError(str(self._place), what)
        raise LogSourceError(str(self._place), f"behind line {first} this is no JSON: {told}")


def _json_type(value: Any, known: Any) -> Any:
    """The type of a value, given that of the values before it. None for null, which says nothing."""
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
