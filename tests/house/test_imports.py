"""The modules that a plain `import` loads, tested in new interpreters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "kafka_records.spark."
SOURCE_ROOTS = [str(ROOT / name) for name in ("generated", "generator", "spark_udfs")]


@cache
def loaded_by(code: str, blocked: tuple[str, ...] = ()) -> set[str]:
    """Top-level modules present after `code`, run where importing a `blocked` one fails."""
    program = "\n".join(
        [
            "import json, sys",
            # Behave as if they were not installed: pyarrow would treat a None in sys.modules as pandas.
            "class Blocked:",
            "    def find_spec(self, name, path=None, target=None):",
            f"        if name.partition('.')[0] in {blocked!r}:",
            "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)",
            "sys.meta_path.insert(0, Blocked())",
            code,
            "loaded = {name.partition('.')[0] for name, module in sys.modules.items() if module}",
            "print(json.dumps(sorted(loaded)))",
        ]
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(SOURCE_ROOTS)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def third_party(code: str, blocked: tuple[str, ...] = ()) -> set[str]:
    """The loaded modules that are neither Python's own nor loaded without `code`, such as those of an editable
    install."""
    return loaded_by(code, blocked) - loaded_by("") - sys.stdlib_module_names


@pytest.mark.parametrize(
    "code",
    [
        "import kafka_records",
        "from kafka_records.consumer_offsets import decode_record",
        "from kafka_records.consumer_offsets.offset_commit import OffsetCommitValue",
        "from kafka_records import registry; registry.message_class('OffsetCommitValue')",
    ],
)
def test_a_service_gets_its_codecs_and_msgspec_only(code: str) -> None:
    ours = {"kafka_records", "kafka_records_runtime"}
    assert third_party(code) <= ours | {"msgspec", "typing_extensions"}


def test_the_registry_loads_one_class_and_not_the_rest() -> None:
    program = (
        "import sys; from kafka_records import registry; registry.message_class('OffsetCommitValue'); "
        "assert 'kafka_records.consumer_offsets.offset_commit' in sys.modules; "
        "assert 'kafka_records.consumer_offsets.group_metadata' not in sys.modules"
    )
    loaded_by(program)


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import kafka_records.spark.control", []),
        ("from kafka_records.spark.control import to_end_txn_marker", ["control.end_txn_marker"]),
        (
            "import kafka_records.spark.control as control; control.ABORTED_TXN; control.from_aborted_txn",
            ["control.aborted_txn"],
        ),
        ("from kafka_records.spark.consumer_offsets import decode_records", ["consumer_offsets._decode_records"]),
        (
            "from kafka_records.spark.consumer_offsets.offset_commit import from_offset_commit_key",
            ["consumer_offsets.offset_commit"],
        ),
    ],
)
def test_a_spark_function_loads_its_module_and_not_the_rest(code: str, loaded: list[str]) -> None:
    inner = f"[name for name in sys.modules if name.startswith({PREFIX!r}) and name.count('.') == 3]"
    wanted = [f"{PREFIX}{name}" for name in loaded]
    loaded_by(f"{code}\nassert {inner} == {wanted!r}, {inner}")


def test_the_spark_functions_of_a_folder_are_all_there() -> None:
    code = (
        "import kafka_records.spark.transaction_state as package\n"
        "everything = {name: getattr(package, name) for name in package.__all__}\n"
        "assert len(everything) == 7 and set(everything) <= set(dir(package))\n"
        "assert everything['decode_records'] is package.decode_records is package._decode_records.decode_records\n"
        "from kafka_records.spark.transaction_state import *\n"
        "assert to_transaction_log_key is package.transaction_log.to_transaction_log_key\n"
        "try:\n"
        "    package.from_transaction_log_kye\n"
        "except AttributeError as error:\n"
        "    assert (error.name, error.obj) == ('from_transaction_log_kye', package)\n"
        "    text = str(error)\n"
        "assert text == \"module 'kafka_records.spark.transaction_state' has no attribute 'from_transaction_log_kye'\""
    )
    loaded_by(code)


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import kafka_records.rpc.fetch_request", []),
        ("from kafka_records.schemas.rpc import FETCH_REQUEST", ["rpc", "rpc.fetch_request"]),
        (
            "from kafka_records.rpc.fetch_request import FetchRequest; assert FetchRequest.CODEC.schema.name",
            ["rpc", "rpc.fetch_request"],
        ),
        ("import kafka_records.schemas.rpc as rpc; rpc.__all__; dir(rpc)", ["rpc"]),
    ],
)
def test_a_schema_is_loaded_when_it_is_needed_and_alone(code: str, loaded: list[str]) -> None:
    inner = "sorted(name for name in sys.modules if name.startswith('kafka_records.schemas.'))"
    wanted = [f"kafka_records.schemas.{name}" for name in loaded]
    loaded_by(f"{code}\nassert {inner} == {wanted!r}, {inner}")


def test_the_schemas_of_a_folder_are_all_there() -> None:
    code = (
        "import kafka_records.schemas.transaction_state as package\n"
        "assert package.RECORDS is package.RECORDS\n"
        "assert package.RECORDS[0].key is package.TRANSACTION_LOG_KEY is package.transaction_log.TRANSACTION_LOG_KEY\n"
        "assert package.__all__ == ['RECORDS', 'RETIRED_TYPES', 'TRANSACTION_LOG_KEY', 'TRANSACTION_LOG_VALUE']\n"
        "assert not hasattr(package, 'TRANSACTION_LOG') and not hasattr(package, 'records')"
    )
    loaded_by(code)


@pytest.mark.parametrize(
    "module", ["kafka_records_runtime", "kafka_records.enums", "kafka_records.schemas.consumer_offsets"]
)
def test_the_runtime_and_the_schemas_need_the_standard_library_only(module: str) -> None:
    ours = {"kafka_records", "kafka_records_runtime"}
    assert third_party(f"import {module}", blocked=("msgspec",)) <= ours


def test_what_runs_in_spark_workers_needs_no_msgspec() -> None:
    packages = (
        "kafka_records_engine",
        "kafka_records_tables.tables",
        "kafka_records_tables.engines",
        "kafka_records.spark",
        "kafka_records.schemas",
    )
    every_module = (
        f"import pkgutil, importlib\nfor name in {packages}:\n"
        "    package = importlib.import_module(name)\n"
        "    for found in pkgutil.walk_packages(package.__path__, name + '.'):\n"
        "        importlib.import_module(found.name)"
    )
    loaded_by(every_module, blocked=("msgspec", "jinja2", "black", "rich"))


@pytest.mark.parametrize(
    "arguments",
    ["'--help'", "'dump', '--help'", "'explain', '--help'", "'table', '--help'", "'table', '--describe', 'groups'"],
)
def test_help_of_the_command_loads_little(arguments: str) -> None:
    code = (
        "import contextlib; from kafka_records_tables.commands.main import main\n"
        f"with contextlib.suppress(SystemExit): main([{arguments}])"
    )
    ours = {"kafka_records_engine", "kafka_records_runtime", "kafka_records_tables"}
    assert third_party(code) <= ours


@pytest.mark.parametrize(
    "code",
    [
        "from kafka_records_tables import TABLES; [(table.names, table.about) for table in TABLES.values()]",
        "from kafka_records_tables.query import query_of; from kafka_records_tables import TABLES\n"
        "query_of(TABLES['current_offsets'], where=['offset>1'], sort=['-offset'])",
        "from kafka_records_tables.results import finding_lines",
    ],
)
def test_what_tables_say_of_themselves_loads_no_arrow(code: str) -> None:
    assert third_party(code) <= {"kafka_records_engine", "kafka_records_runtime", "kafka_records_tables"}


def test_a_table_needs_neither_spark_nor_pandas_nor_msgspec() -> None:
    segments = str(ROOT / "tests" / "data" / "topics" / "kafka-4.3-expiry" / "segments")
    code = (
        "from kafka_records_tables import read_table\n"
        f"assert len(read_table('groups', {segments!r}, processes=2)) == 2"
    )
    loaded_by(code, blocked=("pyspark", "pandas", "msgspec", "rich"))


@pytest.mark.parametrize(
    ("code", "package", "extra"),
    [
        ("from kafka_records_tables import read_table", "pyarrow", "tables"),
        ("from kafka_records_tables.spark import register", "pyspark", "spark"),
        ("from kafka_records_engine.spark.segments import read_segments", "pyspark", "spark"),
        ("from kafka_records.spark.consumer_offsets import decode_records", "pyspark", "spark"),
    ],
)
def test_what_needs_another_package_says_how_to_install_it(code: str, package: str, extra: str) -> None:
    program = f"try:\n    {code}\nexcept ModuleNotFoundError as e:\n    assert e.name == {package!r}, e\n    print(e)"
    blocked = f"import sys; sys.modules[{package!r}] = None\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(SOURCE_ROOTS)}
    done = subprocess.run(
        [sys.executable, "-c", blocked + program],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"{package} is not installed: pip install -e '.[{extra}]'\n", done.stderr
