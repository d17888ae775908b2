"""Turns a caller's arguments into a request. Every argument is checked, and messages say what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from kafka_records_engine import arguments
from kafka_records_engine.sources.question import Question
from kafka_records_tables.engines.package_check import misfits
from kafka_records_tables.engines.request import TableRequest
from kafka_records_tables.near_names import UnknownOption, UnknownTable, check_columns, near
from kafka_records_tables.table_options import moment, option_values, own_options
from kafka_records_tables.tables import TABLES, Table, is_of_records, of_a_moment


def table_called(table: str | Table) -> Table:
    """The declaration of a table. Raises UnknownTable, or TypeError for an argument that is neither a name nor a
    declaration."""
    if isinstance(table, Table):
        return table
    if not isinstance(table, str):
        raise TypeError(f"a table must be one of {', '.join(TABLES)}, or a Table of your own, not {table!r}")
    if table not in TABLES:
        raise UnknownTable(f"no table is called {table!r}; {near(table, TABLES)}")
    return TABLES[table]


def question_of(
    tables: Sequence[str | Table],
    *,
    group: str | Sequence[str] | None = None,
    as_of: datetime | int | str | None = None,
    assume: str | None = None,
    topic: str | None = None,
    package: str = "kafka_records",
    options: Mapping[str, Any] | None = None,
) -> Question:
    """The request to one or more tables. This is the only place where the arguments of `read_table` and similar
    functions become a request. `options` are options that only some tables have. With several tables, each gets the
    options that it has.

    Raises UnknownTable, UnknownOption, ValueError and TypeError.
    """
    declarations = [table_called(table) for table in tables]
    given = options or {}
    own = [given] if len(declarations) == 1 else options_of_each(declarations, given)
    groups = None if group is None else arguments.texts("group", group)
    as_of_ms = assumed = None
    modules, values = [], []
    for table, some in zip(declarations, own, strict=True):
        if groups is not None and table.group is None and not table.group_inputs:
            raise ValueError(f"{table.name} has no column that names a group: leave out group")
        if as_of is not None and not is_of_records(table):
            raise ValueError(f"{table.name} shows logs as they are now: leave out as_of{of_a_moment(table)}")
        modules.append(_checked_module(table))
        if as_of is not None and as_of_ms is None:
            as_of_ms = moment("as_of", as_of)
        values.append(tuple(option_values(table, some, as_of_ms).items()))
        assumed = _checked_assume(assume)
        _check_package(package, table)
    return Question(tuple(modules), tuple(values), as_of_ms, assumed, groups, topic, package)


def question_to(table: Table, values: Mapping[str, Any], **asked: Any) -> Question:
    """A request to a table of this package, from `values` of all its options (`table_options.option_values`). `asked`
    are fields of the request, which `check_question` checks before the request is answered."""
    return Question((table.module,), (tuple(values.items()),), **asked)


def check_question(question: Question) -> None:
    """Raise ValueError for a request with a table or package that does not exist."""
    for request in requests_of(question):
        _checked_module(request.table)
        _check_package(question.package, request.table)


def requests_of(question: Question) -> list[TableRequest]:
    """One request per table of the question."""
    return [TableRequest(each) for each in question.each()]


def request_of(table: str | Table, **asked: Any) -> TableRequest:
    """A request to one table. `asked` and errors are as for `question_of`."""
    return TableRequest(question_of([table], **asked))


def options_of_each(tables: Sequence[Table], given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each table, the given options that it has. Raises UnknownOption for an option that no table has, and
    ValueError if a table is named twice or none is named."""
    names = [table.name for table in tables]
    if not names:
        raise ValueError(f"no table is requested: choose from {', '.join(TABLES)}")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the table {name} is requested twice")
    known = [option.name for option in own_options(tables)]
    for name in given:
        if name not in known:
            there_are = f"; {near(name, known)}" if known else ""
            raise UnknownOption(f"none of {', '.join(names)} has an option {name!r}{there_are}")
    return [{option.name: given[option.name] for option in table.options if option.name in given} for table in tables]


def of_records(table: str | Table) -> str | Table:
    """Return `table`. Raises ValueError for a table that is not computed from records, and so cannot be computed from
    raw rows."""
    declaration = table_called(table)
    if not is_of_records(declaration):
        raise ValueError(f"{declaration.name} is not computed from records: pass the source of the logs to read_table")
    return table


def chosen_columns(table: Table, columns: Sequence[str] | None) -> list[str]:
    """The columns to return. Raises UnknownColumn, ValueError and TypeError."""
    if columns is None:
        return list(table.names)
    chosen = arguments.names("columns", columns)
    if not chosen:
        raise ValueError(f"no columns were requested; {table.name} has {', '.join(table.names)}")
    check_columns(table.name, chosen, table.names)
    for name in chosen:
        if chosen.count(name) > 1:
            raise ValueError(f"the column {name} is requested twice")
    return list(chosen)


def _checked_module(table: Table) -> str:
    """The module of the declaration. Other processes import the table from there, so it must be `TABLE` in that
    module."""
    try:
        found = getattr(import_module(table.module), "TABLE", None)
    except ImportError:
        found = None
    if found is not table:
        raise ValueError(
            f"the table {table.name} is not TABLE of the module {table.module}: a table of your own must be a module "
            "that can be imported, with its declaration in TABLE and a class Reader"
        )
    wanted = "function joined" if table.inputs else "class Reader"
    if not hasattr(table.code, wanted.split()[1]):
        raise ValueError(f"the table {table.name} cannot be read: write the {wanted} in {table.code.__name__}")
    module: str = table.module
    return module


def _check_package(package: str, table: Table) -> None:
    try:
        found = find_spec(arguments.text("package", package)) if package else None
    except ModuleNotFoundError:  # the parent package in that name does not exist
        found = None
    if found is None:
        raise ValueError(
            f"there is no package {package!r}: give one that kafka-records-codegen has generated, and add its "
            f"directory to PYTHONPATH"
        )
    unfit = misfits(table, package)
    if unfit:
        raise ValueError(f"the package {package} cannot be used: {'; '.join(unfit)}")


def _checked_assume(assume: str | None) -> Literal["committed"] | None:
    if assume not in (None, "committed"):
        raise ValueError(f'assume must be "committed" or None, not {assume!r}')
    return None if assume is None else "committed"
