"""The catalog of functions in the JVM: how a session gets it, and its error messages."""

from __future__ import annotations

import logging
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records.spark.consumer_offsets import (
    decode_records,
    from_offset_commit_key,
    from_offset_commit_value,
    to_offset_commit_value,
)
from kafka_records_engine.spark import jvm
from kafka_records_engine.spark.errors import NoJvmFunctions
from kafka_records_engine.spark.jvm import JAR, add_functions, catalog_for, settings, stamp
from kafka_records_engine.spark.raw import as_raw_rows
from tests.acme import acme_package
from tests.spark.conftest import active
from tools.benchmarks import spark_decode
from tools.benchmarks._offset_commits import Mix, offset_commits
from tools.benchmarks._spark_contenders import CONTENDERS
from tools.benchmarks._spark_runs import configured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KEY = "000100016700017400000003"
VALUE = "0003000000000000002affffffff00000000000000000005"
SHORT = VALUE[:-2]


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, built: None) -> Any:
    """The catalog, for calling its functions without a query. One is enough, because Py4J finds methods by the names of
    classes."""
    java: Any = spark._jvm
    loader = java.java.net.URLClassLoader(
        _array(java, java.java.net.URL, [java.java.io.File(str(JAR)).toURI().toURL()]),
        spark._jsparkSession.getClass().getClassLoader(),
    )
    catalog = (
        loader.loadClass("kafkarecords.Catalog")
        .getDeclaredConstructor(_array(java, java.java.lang.Class, []))
        .newInstance(_array(java, java.java.lang.Object, []))
    )
    catalog.initialize("kafka_records", java.org.apache.spark.sql.util.CaseInsensitiveStringMap.empty())
    return catalog


class TestSql:
    def test_a_function_per_message_record_and_topic(self, in_jvm: SparkSession) -> None:
        row = in_jvm.sql(f"""
            SELECT kafka_records.from_offset_commit_key(X'{KEY}').topic AS topic,
                   kafka_records.from_offset_commit_value(X'{VALUE}').offset AS offset,
                   kafka_records.from_offset_commit(X'{KEY}', X'{VALUE}').value.offset AS together,
                   kafka_records.from_group_metadata(X'{KEY}', X'{VALUE}') AS other,
                   kafka_records.from_offset_commit(X'{KEY}', NULL) AS tombstone,
                   kafka_records.decode_consumer_offsets(X'{KEY}', X'{SHORT}').error.message AS error,
                   hex(kafka_records.`to_offset_commit_value?version=3`(
                     kafka_records.from_offset_commit_value(X'{VALUE}'))) AS again
            """).first()
        assert row is not None
        assert (row.topic, row.offset, row.together, row.other, row.again.lower()) == ("t", 42, 42, None, VALUE)
        assert (row.tombstone.key.group, row.tombstone.value) == ("g", None)
        assert row.error == "OffsetCommitValue v3 at byte 14: commit_timestamp needs 8 bytes, but 7 are left"

    def test_a_record_whose_value_cannot_be_read_is_null_and_no_tombstone(self, in_jvm: SparkSession) -> None:
        row = in_jvm.sql(f"SELECT kafka_records.from_offset_commit(X'{KEY}', X'{SHORT}') AS record").first()
        assert row is not None
        assert row.record is None

    def test_show_functions_lists_them(self, in_jvm: SparkSession) -> None:
        found = {row[0] for row in in_jvm.sql("SHOW USER FUNCTIONS IN kafka_records").collect()}
        names = {name.rpartition(".")[2] for name in found}
        assert {"from_offset_commit", "from_offset_commit_value", "decode_transaction_state", "stamp"} <= names

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            ("from_nothing(X'00')", "there is no such function of 1 arguments; SHOW FUNCTIONS lists them"),
            ("`from_offset_commit_key?mode=LOUD`(X'00')", "mode is PERMISSIVE or FAILFAST, not LOUD"),
            ("`from_offset_commit_key?colour=red`(X'00')", "there is no option colour; its options are mode, "),
            (
                "`from_offset_commit_value?version=9`(X'00')",
                "has no version 9: its versions are 0 to 4",
            ),
            ("`decode_consumer_offsets?records=Nobody`(X'00', X'00')", "no record is called Nobody; the records are "),
            (
                "to_offset_commit_value(named_struct('offset', 1L))",
                "v4: the message lacks the field ",
            ),
            ("to_offset_commit_key(named_struct('group', 1))", "is of type int, expected string"),
        ],
    )
    def test_what_is_wrong_is_said_when_the_query_is_made(self, in_jvm: SparkSession, call: str, message: str) -> None:
        with pytest.raises(AnalysisException, match=re.escape(message)):
            in_jvm.sql(f"SELECT kafka_records.{call}")


class TestErrors:
    def test_failfast_says_what_python_says(self, in_jvm: SparkSession) -> None:
        frame = in_jvm.createDataFrame([(bytes.fromhex(KEY), bytes.fromhex(SHORT))], "key binary, value binary")
        raw = as_raw_rows(frame.withColumn("partition", F.lit(3)).withColumn("offset", F.lit(7)), "__consumer_offsets")
        detail = "OffsetCommitValue v3 at byte 14: commit_timestamp needs 8 bytes, but 7 are left"
        with pytest.raises(Py4JJavaError, match=re.escape(f"__consumer_offsets-3 offset 7: {detail}")):
            decode_records(raw, mode="FAILFAST", engine="jvm").collect()
        with pytest.raises(Py4JJavaError, match=re.escape(detail)):
            frame.select(from_offset_commit_value("value", mode="FAILFAST")).collect()

    def test_a_null_where_none_may_be_is_named(self, in_jvm: SparkSession) -> None:
        struct = "named_struct('offset', CAST(NULL AS BIGINT), 'metadata', '', 'commit_timestamp', 5L)"
        frame = in_jvm.sql(f"SELECT {struct} AS value")
        message = "OffsetCommitValue v0: offset is None, which this version does not allow"
        with pytest.raises(IllegalArgumentException, match=re.escape(message)):
            frame.select(to_offset_commit_value("value", 0)).collect()
        assert frame.select(to_offset_commit_value("value", 0, mode="PERMISSIVE")).first() == (None,)


def test_rows_of_other_topics_are_told_apart_as_python_does(in_jvm: SparkSession) -> None:
    rows = [
        (topic, control, bytes.fromhex(KEY), bytes.fromhex(VALUE))
        for topic in ("__consumer_offsets", "__transaction_state", "copy", None)
        for control in (None, "commit")
    ]
    frame = in_jvm.createDataFrame(rows, "topic string, control string, key binary, value binary")
    raw = as_raw_rows(frame)
    for chosen in (None, ["OffsetCommit"], ["GroupMetadata"]):
        for topic in (None, "copy"):
            found, expected = (
                decode_records(raw, chosen, topic=topic, coordinates=["topic"], engine=engine).collect()
                for engine in ("jvm", "python")
            )
            assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_the_benchmark_compares_the_same_rows(in_jvm: SparkSession, tmp_path: Path) -> None:
    raw = in_jvm.read.parquet(*map(str, offset_commits(tmp_path, 500, Mix())))
    spark_decode.check_agreement([CONTENDERS[name] for name in ("ours", "jvm", "jvm columns")], raw, 500)


class TestEngines:
    def test_a_session_without_the_catalog_decodes_in_python(
        self, spark: SparkSession, caplog: pytest.LogCaptureFixture
    ) -> None:
        session = spark.newSession()
        with caplog.at_level(logging.INFO, "kafka_records_engine.spark.jvm"):
            assert catalog_for(session, "kafka_records", None) is None
        assert caplog.messages == [
            "decoding in Python: the session has no catalog kafka_records; "
            'kafka_records_tables.spark.register(spark) or engine="jvm" adds it'
        ]
        assert session.conf.get("spark.sql.catalog.kafka_records", None) is None

    def test_the_jvm_is_taken_where_it_can_be_had(self, in_jvm: SparkSession) -> None:
        assert catalog_for(in_jvm, "kafka_records", None) == "kafka_records"
        assert catalog_for(in_jvm, "kafka_records", "python") is None
        frame = in_jvm.createDataFrame([(bytes.fromhex(KEY),)], "key binary")
        assert "from_offset_commit_key" in plan(frame.select(from_offset_commit_key("key")))

    def test_without_the_jar(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(jvm, "JAR", tmp_path / "kafka-records.jar")
        with pytest.raises(NoJvmFunctions, match=r"this installation has no kafka-records\.jar: build it"):
            add_functions(spark.newSession())

    def test_another_version_is_refused_and_left_alone(
        self, spark: SparkSession, built: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        session = spark.newSession()
        monkeypatch.setattr(jvm, "FORMAT", jvm.FORMAT + 1)
        with pytest.raises(NoJvmFunctions, match="belongs to another version of kafka_records"):
            add_functions(session)
        assert catalog_for(session, "kafka_records", None) is None
        assert "belongs to another version" in caplog.text

    def test_a_setting_without_the_jar_on_the_class_path(self, spark: SparkSession) -> None:
        session = spark.newSession()
        session.conf.set("spark.sql.catalog.kafka_records", "kafkarecords.NoSuchCatalog")
        assert catalog_for(session, "kafka_records", None) is None
        with pytest.raises(NoJvmFunctions, match="the catalog kafka_records is not usable"):
            add_functions(session)

    def test_another_engine_is_refused(self, spark: SparkSession) -> None:
        with pytest.raises(ValueError, match="engine must be 'jvm', 'python' or None, not 'java'"):
            jvm.checked_engine("java")


class TestOwnPackages:
    def test_its_schemas_come_by_a_setting(self, spark: SparkSession, built: None, tmp_path: Path) -> None:
        session = spark.newSession()
        with acme_package(tmp_path, "acme_in_jvm") as registry, active(session):
            assert set(settings("acme_in_jvm")) == {
                "spark.sql.catalog.acme_in_jvm",
                "spark.sql.catalog.acme_in_jvm.schemas",
            }
            add_functions(session, "acme_in_jvm")
            cls = registry.message_class("Everything")
            data = b"".join((cls.VERSIONS[-1].to_bytes(2, "big"), cls().encode(cls.VERSIONS[-1])))
            row = session.sql(
                f"SELECT acme_in_jvm.to_everything(acme_in_jvm.from_everything(X'{data.hex()}')) AS again, "
                "acme_in_jvm.stamp() AS stamp"
            ).first()
            assert row is not None
            assert (bytes(row.again), row.stamp) == (data, stamp("acme_in_jvm"))


class TestPlans:
    def test_filters_on_coordinates_reach_the_files_and_copies_of_a_function_are_the_same_call(
        self, in_jvm: SparkSession, tmp_path: Path
    ) -> None:
        frame = in_jvm.createDataFrame([(bytes.fromhex(KEY), bytes.fromhex(VALUE))], "key binary, value binary")
        raw = as_raw_rows(frame.withColumn("partition", F.lit(3)).withColumn("offset", F.lit(7)), "__consumer_offsets")
        raw.write.parquet(str(tmp_path / "raw"))
        decoded = decode_records(in_jvm.read.parquet(str(tmp_path / "raw")), ["OffsetCommit"], engine="jvm")
        chosen = decoded.where("partition = 3 AND offset_commit.value.offset = 42").select(
            "offset_commit.key.group", "offset_commit.key.topic"
        )
        text = plan(chosen)
        assert re.search(r"PushedFilters: \[.*EqualTo\(partition,3\)", text)
        copies = set(re.findall(r"decode_consumer_offsets\S*\.invoke\(key#\d+, value#\d+, [^.]*?, false\)\)\)", text))
        assert len(copies) == 1, text
        assert chosen.collect() == [("g", "t")]

    def test_a_record_is_decoded_once_however_many_copies_of_a_function_ask(
        self, spark: SparkSession, catalog: Any
    ) -> None:
        java: Any = spark._jvm
        key, value = bytes.fromhex(KEY), bytes.fromhex(VALUE)
        for name, arguments in (
            ("decode_consumer_offsets", (key, value)),
            ("from_offset_commit", (key, value)),
            ("from_offset_commit_value", (value,)),
        ):
            function = _bound(spark, catalog, name, len(arguments))
            given = (
                arguments,
                arguments,
                (*arguments[:-1], value[:-1] + b"9"),
                (*arguments[:-1], value + bytes(70_000)),
            )
            found = [function.invoke(*each) for each in (*given, given[-1], given[0])]
            first, again, other, *_, last = map(java.java.lang.System.identityHashCode, found)
            assert first == again != other, name
            assert last != first
            assert found[-1].equals(found[0]), name
            assert found[-3].equals(found[-2]), name

    @pytest.mark.parametrize("codegen", ["CODEGEN_ONLY", "NO_CODEGEN"])
    def test_rows_that_spark_keeps_are_copies(self, in_jvm: SparkSession, codegen: str) -> None:
        """A function returns the same memory for each row, as Spark's own projections do."""
        values = [VALUE.replace("2a", f"{number:02x}") for number in (42, 43, 44)]
        in_jvm.createDataFrame(
            [(number, bytes.fromhex(value)) for number, value in enumerate(values)], "place int, value binary"
        ).createOrReplaceTempView("kept_values")
        call = "kafka_records.from_offset_commit_value"
        settings = {"spark.sql.codegen.factoryMode": codegen}
        settings["spark.sql.codegen.wholeStage"] = str(codegen == "CODEGEN_ONLY").lower()
        before: dict[str, Any] = {name: in_jvm.conf.get(name, None) for name in settings}
        for name, setting in settings.items():
            in_jvm.conf.set(name, setting)
        try:
            row = in_jvm.sql(f"""
                WITH decoded AS (SELECT place, value, {call}(value) AS v FROM kept_values)
                SELECT transform(sort_array(collect_list(v)), x -> x.offset) AS every,
                       max_by(v, place).offset AS last, min_by(v, place).offset AS first, max(v).offset AS largest,
                       transform(transform(sort_array(collect_list(value)), x -> {call}(x)), x -> x.offset) AS lambdas,
                       size(collect_set(v)) AS distinct,
                       (SELECT array({call}(X'{values[0]}').offset, {call}(X'{values[1]}').offset)) AS constants,
                       (SELECT sum(a.v.offset * b.v.offset) FROM decoded a JOIN decoded b ON a.v = b.v) AS joined,
                       (SELECT collect_list(v.offset)
                        FROM (SELECT lag(v) OVER (ORDER BY place) AS v FROM decoded)) AS lags
                FROM decoded""").first()
        finally:
            for name, setting in before.items():
                if setting is None:
                    in_jvm.conf.unset(name)
                else:
                    in_jvm.conf.set(name, setting)
        assert row is not None
        folded = in_jvm.sql(
            f"SELECT {call}(v) AS v FROM (SELECT X'{values[0]}' AS v UNION ALL SELECT X'{values[1]}' AS v)"
        )
        assert sorted(each.v.offset for each in folded.collect()) == [42, 43]
        assert row.asDict() == {
            "every": [42, 43, 44],
            "last": 44,
            "first": 42,
            "largest": 44,
            "lambdas": [42, 43, 44],
            "distinct": 3,
            "constants": [42, 43],
            "joined": 42 * 42 + 43 * 43 + 44 * 44,
            "lags": [42, 43],
        }

    @pytest.mark.parametrize("codegen", ["CODEGEN_ONLY", "NO_CODEGEN"])
    def test_whole_rows_of_a_topic_that_spark_keeps_are_copies(self, in_jvm: SparkSession, codegen: str) -> None:
        """decode_… gives one row object again and again, whose columns are fields."""
        key = KEY + "ff"
        values = [VALUE.replace("2a", f"{number:02x}") for number in (42, 43)]
        rows = [(at, bytes.fromhex(key), bytes.fromhex(value)) for at, value in enumerate([*values, SHORT])]
        in_jvm.createDataFrame(rows, "place int, key binary, value binary").createOrReplaceTempView("kept_records")
        settings = {"spark.sql.codegen.factoryMode": codegen}
        settings["spark.sql.codegen.wholeStage"] = str(codegen == "CODEGEN_ONLY").lower()
        call = "kafka_records.`decode_consumer_offsets?records=OffsetCommit`"
        with configured(in_jvm, settings):
            row = in_jvm.sql(f"""
                WITH decoded AS (SELECT place, {call}(key, value) AS r FROM kept_records)
                SELECT transform(sort_array(collect_list(struct(place, r))),
                                 x -> x.r.offset_commit.value.offset) AS every,
                       max_by(r, place).error.byte_offset AS last, hex(min_by(r, place).raw_key) AS first,
                       transform(sort_array(collect_list(struct(place, r))), x -> hex(x.r.raw_value)) AS raw,
                       size(collect_set(r)) AS distinct, min_by(r, place).leniencies AS leniencies
                FROM decoded""").first()
            folded = in_jvm.sql(f"SELECT {call}(X'{key}', X'{values[0]}') AS r").first()
        assert row is not None
        assert folded is not None
        assert row.asDict() == {
            "every": [42, 43, None],
            "last": 14,
            "first": key.upper(),
            "raw": [*(value.upper() for value in values), SHORT.upper()],
            "distinct": 3,
            "leniencies": [],
        }
        assert (folded.r.key_bytes_left, folded.r.offset_commit.value.offset) == (1, 42)
        assert bytes(folded.r.raw_key).hex() == key


class TestRowsOfATask:
    """decode_… returns the same row object each time, whose columns are Java fields."""

    def test_their_columns_as_a_sequence(self, spark: SparkSession, catalog: Any) -> None:
        """This does not apply to the driver, which gets copies. Spark has no query for `toSeq`, but libraries may call
        it."""
        java: Any = spark._jvm
        function = _bound(spark, catalog, "decode_consumer_offsets", 2)
        context = getattr(getattr(java.org.apache.spark, "TaskContext$"), "MODULE$")
        context.setTaskContext(context.empty())
        try:
            row = function.invoke(bytes.fromhex(KEY), bytes.fromhex(SHORT))
        finally:
            context.unset()
        assert row.getClass().getSimpleName() == "DecodedRow"
        columns = row.toSeq(function.resultType())
        assert columns.size() == row.numFields() == len(row.values())
        assert [columns.apply(at) for at in range(6)] == [1, 3, False, 0, 0, False]
        assert columns.apply(7).getInt(4) == 14
        assert bytes(columns.apply(9)).hex() == SHORT
        assert row.copy().equals(row)

    @pytest.mark.parametrize("codegen", ["CODEGEN_ONLY", "NO_CODEGEN"])
    def test_expressions_that_take_whole_rows(self, in_jvm: SparkSession, codegen: str) -> None:
        rows = [(bytes.fromhex(KEY), bytes.fromhex(value)) for value in (VALUE, SHORT)]
        in_jvm.createDataFrame(rows, "key binary, value binary").createOrReplaceTempView("whole_records")
        settings = {"spark.sql.codegen.factoryMode": codegen}
        settings["spark.sql.codegen.wholeStage"] = str(codegen == "CODEGEN_ONLY").lower()
        with configured(in_jvm, settings):
            found = in_jvm.sql("""
                WITH decoded AS (SELECT kafka_records.decode_consumer_offsets(key, value) AS r FROM whole_records)
                SELECT r.*, hash(r) = hash(struct(r.*)) AS hashed, r = struct(r.*) AS equal, r IN (r, NULL) AS among,
                       to_json(r) AS json, CAST(r AS STRING) AS text, array(r)[0].record_type AS nested
                FROM decoded""").collect()
        good, cut = sorted(found, key=lambda row: row.error is not None)
        assert (good.offset_commit.value.offset, cut.error.byte_offset, bytes(cut.raw_value).hex()) == (42, 14, SHORT)
        for row in found:
            assert (row.hashed, row.equal, row.among, row.nested) == (True, True, True, 1)
            assert row.json.startswith('{"record_type":1,"value_version":3,"is_tombstone":false,')
            assert row.text.startswith("{1, 3, false, 0, 0, false, [], ")


def _bound(spark: SparkSession, catalog: Any, name: str, arguments: int) -> Any:
    """A function of the catalog with this number of arguments, all of them bytes."""
    java: Any = spark._jvm
    types = java.org.apache.spark.sql.types.StructType()
    for at in range(arguments):
        types = types.add(f"c{at}", "binary")
    identifier = java.org.apache.spark.sql.connector.catalog.Identifier.of(
        _array(java, java.java.lang.String, []), name
    )
    return catalog.loadFunction(identifier).bind(types)


def _array(java: Any, kind: Any, values: list[Any]) -> Any:
    made = java.java.lang.reflect.Array.newInstance(kind._java_lang_class, len(values))
    for at, each in enumerate(values):
        java.java.lang.reflect.Array.set(made, at, each)
    return made


def test_no_method_is_too_large_to_be_compiled(built: None) -> None:
    """HotSpot leaves methods of more than 8000 bytes of bytecode to the interpreter."""
    names = subprocess.run(["jar", "tf", str(JAR)], capture_output=True, text=True, check=True).stdout.split()
    classes = [name.removesuffix(".class") for name in names if name.endswith(".class")]
    listed = subprocess.run(
        ["javap", "-c", "-p", "-cp", str(JAR), *classes], capture_output=True, text=True, check=True
    ).stdout
    assert max(int(offset) for offset in re.findall(r"^ +(\d+): [a-z]", listed, re.MULTILINE)) < 2000


def plan(frame: object) -> str:
    """The plan of a DataFrame."""
    text: str = frame._jdf.queryExecution().toString()  # type: ignore[attr-defined]
    return text.split("== Physical Plan ==")[1]
