"""The Spark modules: their functions, their docstrings, and that their examples are right."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.loader import load
from kafka_records_codegen.products import spark
from kafka_records_codegen.text.page import Package
from kafka_records_runtime.records.framing import METADATA, end_frame, framing_of, start_frame
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.wire import walker
from tests.generator.spec_files import field, spec, write

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "client_protocols",
    "cluster_metadata",
    "consumer_offsets",
    "consumer_protocol",
    "control",
    "log_files",
    "proposed",
    "remote_log_metadata",
    "share_group_state",
    "streams_protocol",
    "transaction_state",
)


@pytest.fixture(scope="module")
def ours(our_files: dict[str, str]) -> dict[str, str]:
    return {path: text for path, text in our_files.items() if path.startswith("spark/") and path.endswith(".py")}


def functions(page: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(page).body if isinstance(node, ast.FunctionDef)}


def functions_below(files: dict[str, str], folder: str) -> dict[str, ast.FunctionDef]:
    """The functions of all modules of a folder; without the helper with which its package imports them."""
    modules = [path for path in files if path.startswith(folder) and not path.endswith("__init__.py")]
    assert modules
    return {name: function for path in modules for name, function in functions(files[path]).items()}


def docstring(function: ast.FunctionDef) -> str:
    text = ast.get_docstring(function)
    assert text is not None
    return text


def signature(function: ast.FunctionDef) -> str:
    """The arguments after the column, with their defaults."""
    return ast.unparse(function.args).removeprefix("col: Column | str").removeprefix(", ")


def example(text: str) -> tuple[bytes, int | None, str, str]:
    """The bytes of an example, its version, its column, and the value there."""
    code = "\n".join(re.findall(r"^(?:>>>|\.\.\.) (.*)$", text, re.MULTILINE))
    data = bytes.fromhex("".join(re.findall(r'"([0-9a-f]+)"', code)))
    version = re.search(r'decoded = from_\w+\("data", (\d+)\)', code)
    column = re.search(r'getField\("(\w+)"\)', code)
    found = text.strip().splitlines()[-1]
    return data, None if version is None else int(version[1]), "" if column is None else column[1], found


def test_modules_are_short(ours: dict[str, str]) -> None:
    assert len(ours) > 30
    assert {path: text.count("\n") for path, text in ours.items() if text.count("\n") > 1000} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_examples_are_true(ours: dict[str, str], folder: str) -> None:
    """Every message has an example, except those without a column to show. tests/spark runs such code."""
    schemas: Any = import_module(f"kafka_records.schemas.{folder}")
    made = functions_below(ours, f"spark/{folder}/")
    kinds = {each.value.name: "value" for each in getattr(schemas, "RECORDS", {}).values()}
    kinds |= {each.key.name: "key" for each in getattr(schemas, "RECORDS", {}).values() if each.key_or_none}
    types = {each.key.name: each.type for each in getattr(schemas, "RECORDS", {}).values() if each.key_or_none}
    messages = [getattr(schemas, name) for name in schemas.__all__ if name not in ("RECORDS", "RETIRED_TYPES")]
    assert messages
    for schema in messages:
        name = next(name for name in made if name == f"from_{_constant(schemas, schema)}")
        data, version, column, found = example(docstring(made[name]))
        if not data:
            assert all(field.tag is not None or field.base == "uuid" for field in schema.root.fields), name
            continue
        if version is None and framing_of(getattr(schemas, "RECORDS", {})) == METADATA:
            version, at = end_frame(data, start_frame(None, data)[1])
            data = data[at:]
        elif version is None:
            number, data = int.from_bytes(data[:2], "big"), data[2:]
            is_key = kinds.get(schema.name) == "key"
            assert not is_key or number == types[schema.name]
            version = 0 if is_key else number
        value = walker.decode(schema, data, version)[0]
        shown = list(value[column]) if isinstance(value[column], tuple) else value[column]
        assert repr(shown) == found, name
        assert schema.versions is not None
        assert version == schema.versions[1], name
        assert walker.encode(schema, value, version) == data, name
        assert example(docstring(made[name.replace("from_", "to_", 1)]))[0].endswith(data)


def _constant(schemas: Any, schema: MessageSchema) -> str:
    name: str = next(name for name in schemas.__all__ if getattr(schemas, name) is schema)
    return name.lower()


def test_arguments_of_records_and_messages(ours: dict[str, str]) -> None:
    records = functions_below(ours, "spark/consumer_offsets/")
    each_version = "version: int | Column | str | None=None"
    engine = "engine: Literal['jvm', 'python'] | None=None"
    assert signature(records["from_offset_commit_key"]) == (
        f"*, mode: str='PERMISSIVE', unknown_tags: bool=False, {engine}"
    )
    assert signature(records["from_offset_commit_value"]) == (
        f"*, mode: str='PERMISSIVE', unknown_tags: bool=False, {engine}"
    )
    assert signature(records["to_offset_commit_key"]) == f"*, mode: str='FAILFAST', {engine}"
    assert signature(records["to_offset_commit_value"]) == f"{each_version}, *, mode: str='FAILFAST', {engine}"
    assert signature(records["decode_records"]) == (
        "df: DataFrame, records: Sequence[str] | None=None, mode: str='PERMISSIVE', "
        "observation: Observation | str | None=None, unknown_tags: bool=False, coordinates: Sequence[str] | None=None, "
        f"topic: str | None=None, {engine}"
    )
    protocol = functions_below(ours, "spark/consumer_protocol/")
    assert signature(protocol["from_consumer_protocol_subscription"]) == (
        f"{each_version}, *, parse_as: int | None=None, newer_as_highest: bool=True, "
        f"mode: str='PERMISSIVE', unknown_tags: bool=False, {engine}"
    )
    assert signature(protocol["to_consumer_protocol_subscription"]) == (
        f"{each_version}, *, mode: str='FAILFAST', version_prefix: bool=True, {engine}"
    )


def test_only_stored_messages_have_functions(ours: dict[str, str]) -> None:
    """Requests, responses and headers have none, and a folder that holds nothing else has no package."""
    assert {path.split("/")[1] for path in ours} == {*FOLDERS, "__init__.py"}


def test_only_what_kafka_reads_so_reads_newer_versions(ours: dict[str, str]) -> None:
    taking = [
        name
        for name, function in functions_below(ours, "spark/").items()
        if "newer_as_highest: bool=True" in signature(function)
    ]
    assert sorted(taking) == [
        "from_connect_protocol_assignment",
        "from_connect_protocol_subscription",
        "from_consumer_protocol_assignment",
        "from_consumer_protocol_subscription",
        "from_control_record_type_schema",
        "from_end_txn_marker",
    ]


def test_columns_are_listed_one_per_line_inner_ones_further_in(ours: dict[str, str]) -> None:
    text = docstring(functions_below(ours, "spark/consumer_protocol/")["from_consumer_protocol_subscription"])
    assert text.partition("Returns\n-------\n")[2].partition("\n\n")[0] == (
        "Column\n"
        "    struct of\n"
        "        topics array<string>\n"
        "        user_data binary\n"
        "        owned_partitions array<struct>\n"
        "            topic string\n"
        "            partitions array<int>\n"
        "        generation_id int\n"
        "        rack_id string"
    )


def test_lines_of_docstrings_are_not_long(ours: dict[str, str]) -> None:
    for function in functions_below(ours, "spark/").values():
        too_long = [line for line in docstring(function).splitlines() if len(line) > 106]
        assert not too_long, (function.name, too_long)


@pytest.fixture
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _page(**texts: str) -> dict[str, ast.FunctionDef]:
    return functions(spark.generate(load(write(**texts)), Package("acme"))["spark/foo.py"])


@pytest.mark.usefixtures("_in_a_folder")
class TestSpecsOfOthers:
    def test_their_messages_take_no_newer_versions_unless_asked(self) -> None:
        made = _page(Foo=spec(field()))
        assert "newer_as_highest: bool=False" in signature(made["from_foo"])
        assert "own readers" not in docstring(made["from_foo"])

    def test_text_fields_hold_their_names(self) -> None:
        fields = (field("Title", "string"), field("Tagged", "string", "1+", tag=0, taggedVersions="1+"))
        data, version, column, found = example(docstring(_page(Foo=spec(*fields))["from_foo"]))
        assert (data, version, column, found) == (b"\x00\x02\x06title\x00", None, "title", "'title'")

    def test_a_field_that_spark_and_python_print_alike_is_shown(self) -> None:
        fields = (field("Ratio", "float64"), field("Id", "uuid"), field("Raw", "bytes"), field("Names", "[]string"))
        assert example(docstring(_page(Foo=spec(*fields))["from_foo"]))[2:] == ("names", "[]")

    @pytest.mark.parametrize(
        "text",
        [
            spec(),
            spec(field("Raw", "bytes")),
            spec(field("Names", "[]string", nullableVersions="0+", default="null")),
            spec(field("Late", "int32", "0"), validVersions="0-2"),
        ],
        ids=["no field", "bytes", "null", "none in the highest version"],
    )
    def test_without_anything_to_show_there_is_no_example(self, text: str) -> None:
        made = _page(Foo=text)
        assert "Examples" not in docstring(made["from_foo"]) + docstring(made["to_foo"])

    @pytest.mark.parametrize("kind", ["request", "response", "header"])
    def test_of_messages_that_no_topic_holds_there_are_none(self, kind: str) -> None:
        name = f"Foo{kind.title()}"
        attributes: dict[str, Any] = {} if kind == "header" else {"apiKey": 7}
        attributes |= {"listeners": ["broker"]} if kind == "request" else {}
        model = load(
            write(**{name: spec(field(), type=kind, name=name, **attributes), "Bar": spec(field(), name="Bar")})
        )
        assert set(spark.generate(model, Package("acme"))) == {"spark/__init__.py", "spark/bar.py"}
        Path("specs", "Bar.json").unlink()
        alone = load(Path("specs"))
        assert set(spark.generate(alone, Package("acme"))) == {"spark/__init__.py"}

    def test_a_message_without_fields(self) -> None:
        assert "struct of\n        no fields" in docstring(_page(Foo=spec())["from_foo"])
