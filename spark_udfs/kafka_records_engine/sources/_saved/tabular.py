"""Files as batches of their own columns: one reader for each format, all alike.

A reader says which columns a file has, and gives some of them batch by batch with the number of the first row. Parquet
and Arrow files come in groups, each of which can be read by itself.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.log.places import LogSourceError, Place
from kafka_records_engine.sources._saved.saved_formats import Format, open_file, open_stream, unreadable
from kafka_records_engine.sources._stored.stored_names import MARK
from kafka_records_runtime.installing import install_command

_ROWS: Final = 65_536
_BLOCK: Final = 8 * 1024 * 1024
_SAMPLE: Final = 1000
"""The first N rows of JSON say which columns there are."""

OF_A_SNAPSHOT: Final = (
    f"this belongs to a snapshot, which also holds deleted rows: name the directory with {MARK}, alone, without "
    "pattern, on this machine"
)


class Extremes(NamedTuple):
    """The smallest and the largest value of a column in a group that has no nulls."""

    least: Any
    most: Any


class FileReader(Protocol):
    """A file that was opened for reading."""

    fields: dict[str, Any]
    """The types of the columns by name."""
    groups: int | None
    """How many parts can be read by themselves; None where the file is read from its start to its end."""

    def rows(self, group: int) -> int:
        """How many rows a group has."""

    def statistics(self, group: int, column: str) -> Extremes | None:
        """What the file says about a column of a group, if anything."""

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        """Record batches of the columns that are asked for, each with the number of its first row in the file or, if a
        `group` is named, in the group. Raises OSError, pa.ArrowException and LogSourceError."""


def package_missing(place: Place, what: str, package: str, extra: str) -> LogSourceError:
    """What is said about a file that needs a package which is not installed."""
    return LogSourceError(str(place), f"{what} needs {package}, which is not installed: {install_command(extra)}")


def open_reader(place: Place, format: Format) -> FileReader:
    """A reader of one file. Raises LogSourceError for what cannot be read as such a file."""
    try:
        reader: FileReader = _READERS[format](place)
        return reader
    except (OSError, pa.ArrowException, EOFError) as error:
        raise unreadable(place, error) from None


# -- Parquet and Arrow -------------------------------------------------------------------------------------------------


class _Parquet:
    def __init__(self, place: Place) -> None:
        import pyarrow.parquet as pq

        from kafka_records_engine.sources._stored.stretches import METADATA_KEY

        self._place = place
        self._file = pq.ParquetFile(open_file(place), page_checksum_verification=True)
        if METADATA_KEY in (self._file.metadata.metadata or {}):
            raise LogSourceError(str(place), OF_A_SNAPSHOT)
        self.fields = {field.name: field.type for field in self._file.schema_arrow}
        self.groups: int | None = self._file.num_row_groups
        names = [self._file.schema.column(at).path for at in range(len(self._file.schema.names))]
        self._numbers = {name: at for at, name in enumerate(names)}

    def rows(self, group: int) -> int:
        return int(self._file.metadata.row_group(group).num_rows)

    def statistics(self, group: int, column: str) -> Extremes | None:
        at = self._numbers.get(column)
        if at is None:
            return None
        told = self._file.metadata.row_group(group).column(at).statistics
        if told is None or not told.has_min_max or not told.has_null_count or told.null_count:
            return None
        return Extremes(told.min, told.max)

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        first = 0
        groups = None if group is None else [group]
        if not columns:
            count = self._file.metadata.num_rows if group is None else self.rows(group)
            yield 0, _no_columns(count)
            return
        for batch in self._file.iter_batches(_ROWS, row_groups=groups, columns=list(columns), use_threads=False):
            yield first, batch
            first += batch.num_rows


def _no_columns(count: int) -> Any:
    return pa.record_batch([pa.nulls(count)], names=[""]).select([])


class _ArrowFile:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._file = pa.ipc.open_file(open_file(place, maps=True))
        self.fields = {field.name: field.type for field in self._file.schema}
        self.groups: int | None = self._file.num_record_batches

    def rows(self, group: int) -> int:
        return int(self._file.get_batch(group).num_rows)

    def statistics(self, group: int, column: str) -> Extremes | None:
        return None

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        first = 0
        for number in range(self._file.num_record_batches) if group is None else (group,):
            batch = self._file.get_batch(number).select(list(columns))
            for start in range(0, batch.num_rows, _ROWS):
                yield first + start, batch.slice(start, _ROWS)
            first += batch.num_rows


class _Sequential:
    """A file that is read from its start to its end."""

    groups: int | None = None

    def rows(self, group: int) -> int:
        raise NotImplementedError(group)

    def statistics(self, group: int, column: str) -> Extremes | None:
        return None


class _ArrowStream(_Sequential):
    def __init__(self, place: Place) -> None:
        self._place = place
        with open_stream(place) as file, pa.ipc.open_stream(file) as stream:
            self.fields = {field.name: field.type for field in stream.schema}

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        first = 0
        with open_stream(self._place) as file, pa.ipc.open_stream(file) as stream:
            for whole in stream:
                batch = whole.select(list(columns))
                for start in range(0, batch.num_rows, _ROWS):
                    yield first + start, batch.slice(start, _ROWS)
                first += batch.num_rows


class _FeatherV1(_Sequential):
    """Feather before it was Arrow's file format: all in memory."""

    def __init__(self, place: Place) -> None:
        import pyarrow.feather as feather

        self._table = feather.read_table(open_file(place, maps=True))
        self.fields = {field.name: field.type for field in self._table.schema}

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        first = 0
        for batch in self._table.select(list(columns)).to_batches(_ROWS):
            yield first, batch
            first += batch.num_rows


def _arrow(place: Place) -> FileReader:
    with open_stream(place) as file:
        start = bytes(file.read(6))
    if start.startswith(b"FEA1"):
        return _FeatherV1(place)
    return _ArrowFile(place) if start == b"ARROW1" else _ArrowStream(place)


# -- Avro --------------------------------------------------------------------------------------------------------------

_AVRO_TYPES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_AVRO_TIMES: Final = {
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}


class _Avro(_Sequential):
    def __init__(self, place: Place) -> None:
        try:
            import fastavro
        except ModuleNotFoundError:
            raise package_missing(place, "Avro", "fastavro", "avro") from None
        self._place = place
        self._fastavro = fastavro
        try:
            with open_stream(place) as file:
                schema: Any = fastavro.block_reader(file).writer_schema
        except Exception as error:  # fastavro raises whatever hostile bytes lead it into
            raise unreadable(place, error) from None
        kind = _avro_type(schema)
        if not pa.types.is_struct(kind):
            raise LogSourceError(str(place), "the Avro schema is no record: rows have columns")
        self.fields = {field.name: field.type for field in kind}

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        names = list(dict.fromkeys(name.partition(".")[0] for name in columns))
        first = 0
        try:
            with open_stream(self._place) as file:
                rows: Iterator[Any] = (row for block in self._fastavro.block_reader(file) for row in block)
                while some := list(islice(rows, _SAMPLE * 10)):
                    arrays = [pa.array([row[name] for row in some], self.fields[name]) for name in names]
                    yield first, pa.record_batch(arrays, names=names)
                    first += len(some)
        except Exception as error:
            text = " ".join(str(error).split()) or "the file ends in the middle of a block"
            raise LogSourceError(str(self._place), f"behind row {first} this is no Avro: {text}") from None


def _avro_type(kind: Any) -> Any:
    if isinstance(kind, list):
        kinds = [each for each in kind if each != "null"]
        return _avro_type(kinds[0]) if len(kinds) == 1 else pa.null() if not kinds else pa.list_(pa.null())
    if isinstance(kind, dict):
        if kind.get("logicalType") in _AVRO_TIMES:
            return _AVRO_TIMES[kind["logicalType"]]
        if kind["type"] == "record":
            return pa.struct([(field["name"], _avro_type(field["type"])) for field in kind["fields"]])
        return _avro_type(kind["type"])
    return _AVRO_TYPES.get(kind, pa.list_(pa.null()))  # what is nested can stand for no column


# -- JSON lines --------------------------------------------------------------------------------------------------------


class _Json(_Sequential):
    def __init__(self, place: Place) -> None:
        self._place = place
        self.fields: dict[str, Any] = {}
        with open_stream(place) as file:
            lines = _first_lines(file)
        for number, line in enumerate(lines):
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
        import pyarrow.json as pj

        names = list(dict.fromkeys(name.partition(".")[0] if name not in self.fields else name for name in columns))
        # Texts are read as bytes: kcat writes bytes as they are, and no checker of UTF-8 may stand in the way.
        schema = pa.schema([(name, _unchecked(self.fields[name])) for name in names])
        options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        first = line = 0
        with open_stream(self._place) as file:
            for block in _blocks_of_lines(file):
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


def _first_lines(file: Any) -> list[bytes]:
    data = b""
    while data.count(b"\n") < _SAMPLE and len(data) < _BLOCK:
        more = bytes(file.read(1 << 20))
        if not more:
            break
        data += more
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if more:
        lines = lines[:-1] or lines
    return [line for line in lines[:_SAMPLE] if line.strip()]


def _blocks_of_lines(file: Any) -> Iterator[bytes]:
    left = bytes(file.read(3)).removeprefix(b"\xef\xbb\xbf")
    while more := bytes(file.read(_BLOCK)):
        end = more.rfind(b"\n") + 1
        if end:
            yield left + more[:end]
            left = more[end:]
        else:
            left += more
    if left.strip():
        yield left


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


# -- CSV ---------------------------------------------------------------------------------------------------------------


class _Csv(_Sequential):
    """All columns are texts. A file without a line of names has columns that are called 1, 2 and so on."""

    def __init__(self, place: Place) -> None:
        from kafka_records_engine.sources._saved.taken_columns import raw_name

        self._place = place
        with open_stream(place) as file:
            lines = _first_lines(file)
        head = lines[0].rstrip(b"\r").decode("utf-8", "replace") if lines else ""
        self._delimiter = max(",;\t|", key=head.count)
        names = [name.strip().strip('"') for name in head.split(self._delimiter)]
        self._has_names = any(raw_name(name) for name in names) and not any(name.isdigit() for name in names)
        self._names = names if self._has_names else [str(at + 1) for at in range(len(names))]
        self.fields = dict.fromkeys(self._names if lines else (), pa.string())

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        import pyarrow.csv as pv

        if not self.fields:
            return
        first = 0
        with open_stream(self._place) as file:
            options = {
                "read_options": pv.ReadOptions(
                    use_threads=False, block_size=_BLOCK, column_names=None if self._has_names else self._names
                ),
                "parse_options": pv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                # What is not quoted and empty is null, what is quoted and empty is not: a tombstone and an empty value.
                "convert_options": pv.ConvertOptions(
                    column_types=dict.fromkeys(self._names, pa.binary()),
                    include_columns=list(columns),
                    null_values=["", "null", "NULL", "\\N"],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            }
            try:
                with pv.open_csv(file, **options) as reader:
                    for batch in reader:
                        yield first, batch
                        first += batch.num_rows
            except pa.ArrowInvalid as error:
                raise LogSourceError(str(self._place), " ".join(str(error).split())) from None


_READERS: Final[dict[Format, Any]] = {
    "parquet": _Parquet,
    "arrow": _arrow,
    "avro": _Avro,
    "json": _Json,
    "csv": _Csv,
}


# -- columns -----------------------------------------------------------------------------------------------------------


def top_level(column: str, fields: dict[str, Any]) -> str:
    """The column of a file that a member stands in, or the column itself."""
    name, dot, rest = column.partition(".")
    while name not in fields and dot:
        more, dot, rest = rest.partition(".")
        name = f"{name}.{more}"
    return name if column not in fields else column


def top_columns(reader: FileReader, columns: Iterable[str]) -> list[str]:
    """The columns that a reader has to give so that these, which may be members, can be taken from them."""
    return list(dict.fromkeys(top_level(column, reader.fields) for column in columns))


def member(batch: Any, column: str, fields: dict[str, Any]) -> Any:
    """A column of a batch, or a member inside of one."""
    name = top_level(column, fields)
    array = batch.column(name)
    rest = column[len(name) + 1 :]
    while rest:
        inner = {field.name: field.type for field in array.type}
        name = top_level(rest, inner)
        array = pc.struct_field(array, name)
        rest = rest[len(name) + 1 :]
    return array
