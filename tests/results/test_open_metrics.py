"""Tables and reports as metrics: names, values, hostile names, how many there are, and the rules over them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parsed_prometheus

from kafka_records_tables.commands.written_output import TABLES_WITH_METRICS
from kafka_records_tables.read import read_table
from kafka_records_tables.results.open_metrics import METRICS, TableMetrics
from kafka_records_tables.results.open_metrics import Samples as MetricSamples
from tests.cli.running import run, run_on_screen
from tests.tables.topic import Topic

ROOT = Path(__file__).parents[2]
SEGMENTS = str(ROOT / "tests/data/topics/kafka-4.3/segments")
TIMED = str(ROOT / "tests/data/timed/data")
RULES = ROOT / "examples/alerts/kafka-records.rules.yml"

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]

HOSTILE = (
    *('a"b', "a\\b", "a\nb", "a\\nb", 'x"} 1\nevil{a="', "# EOF"),
    *("\x1b[2J", "注文-集計", " ", "=1+1", "\x00", "\u2028"),
)


def samples(text: str, parse: Any = parsed_openmetrics) -> Samples:
    found = [each for family in parse(text) for each in family.samples]
    by_labels = {(each.name, frozenset(each.labels.items())): each.value for each in found}
    assert len(by_labels) == len(found)
    return by_labels


def one(found: Samples, name: str, **labels: Any) -> float:
    return found[name, frozenset((key, str(value)) for key, value in labels.items())]


def metrics_of(table: str, *options: str, source: str = SEGMENTS) -> Samples:
    ran = run("table", table, source, "--format", "openmetrics", *options)
    assert ran.status == 0
    assert ran.out.endswith("\n# EOF\n")
    found = samples(ran.out)
    # node_exporter's collector reads the older format.
    assert samples(ran.out, parsed_prometheus) == found
    return found


def test_the_tables_with_metrics_are_those_that_the_command_names() -> None:
    assert (*METRICS,) == TABLES_WITH_METRICS
    names = [metric.name for metrics in METRICS.values() for metric in metrics]
    assert len({*names}) == len(names)


@pytest.mark.parametrize("table", [*METRICS])
def test_every_value_of_a_row_is_a_sample(table: str) -> None:
    found = metrics_of(table)
    assert one(found, "kafka_records_complete", table=table) == 1
    assert one(found, "kafka_records_rows_left_out", table=table) == 0
    rows = read_table(table, SEGMENTS).table.to_pylist()
    assert rows
    for metric in METRICS[table]:
        mine = {labels: value for (name, labels), value in found.items() if name == metric.name}
        told = {frozenset(zip(metric.labels, metric.labels_of(row), strict=True)): metric.of(row) for row in rows}
        # The library leaves labels as they are; an empty one stays.
        assert mine == pytest.approx({labels: value for labels, value in told.items() if value is not None})


def test_offsets_that_wait_are_added_up_over_the_partitions_of_the_log() -> None:
    (metric,) = (each for each in METRICS["open_transactions"] if each.name.endswith("pending_offsets"))
    family = MetricSamples(metric)
    for waiting in (["a", "b"], None, ["c"]):
        family.take({"transactional_id": "t", "producer_id": 7, "holds_back": waiting})
    assert [*family.values.values()] == [3]


def test_lag_by_the_names_of_dashboards() -> None:
    rows = read_table("lag", TIMED).table.to_pylist()
    found = samples(run("table", "lag", TIMED, "--format", "openmetrics").out)
    known = [row for row in rows if row["lag"] is not None]
    assert known
    for row in known:
        place = {"topic": row["topic"], "partition": row["partition"]}
        assert one(found, "kafka_consumergroup_lag", consumergroup=row["group_id"], **place) == row["lag"]
        assert one(found, "kafka_consumergroup_current_offset", consumergroup=row["group_id"], **place) == row["offset"]
        seconds = found.get(
            (
                "kafka_consumergroup_group_lag_seconds",
                frozenset({("group", row["group_id"]), ("topic", row["topic"]), ("partition", str(row["partition"]))}),
            )
        )
        if row["lag"] == 0:
            assert seconds == 0
        elif row["unread_timestamp_ms"] is not None:
            assert seconds is not None
            assert seconds > 0


def test_hostile_names_are_labels_and_nothing_else(tmp_path: Path) -> None:
    topic = Topic()
    for group in HOSTILE:
        topic.commit(group, 7)
    rows = topic.table()
    answer = read_table("lag", rows, assume="committed")
    metrics = TableMetrics("lag", answer.table.to_batches(), 1000)
    path = tmp_path / "out.prom"
    with path.open("w", encoding="utf-8", newline="") as out:
        metrics.write(out, is_complete=True, now=1.0)
    text = path.read_bytes().decode("utf-8")
    for parse in (parsed_openmetrics, parsed_prometheus):
        found = samples(text, parse)
        groups = {dict(labels)["consumergroup"] for name, labels in found if name.endswith("_current_offset")}
        assert groups == {*HOSTILE}
        assert not any(name.startswith("evil") for name, _ in found)


def test_a_terminal_gets_no_escape_sequence() -> None:
    shown = run_on_screen("table", "group_lag", SEGMENTS, "--format", "openmetrics", columns=80)
    assert shown.status == 0
    assert "\x1b" not in shown.out
    assert samples(shown.out).keys() == metrics_of("group_lag").keys()


def test_series_are_bounded_and_what_is_cut_is_said() -> None:
    rows = read_table("group_lag", SEGMENTS).table.num_rows
    ran = run("table", "group_lag", SEGMENTS, "--format", "openmetrics", "--max-series", "9")
    found = samples(ran.out)
    groups = {dict(labels)["group"] for _, labels in found if "group" in dict(labels)}
    assert len(groups) < rows
    assert sum("group" in dict(labels) for _, labels in found) <= 9
    assert one(found, "kafka_records_rows_left_out", table="group_lag") == rows - len(groups)
    assert f"note: {rows - len(groups)} rows left out: the metrics have at most 9 time series" in ran.err


def test_rows_that_come_late_or_are_not_asked_for_are_counted_right() -> None:
    rows = read_table("group_lag", SEGMENTS).table.num_rows
    for words, wanted in (((), rows), (("--limit", "3"), 3), (("--sort=-lag",), rows)):
        ran = run("table", "group_lag", SEGMENTS, "--format", "openmetrics", "--max-series", "9", *words)
        found = samples(ran.out)
        groups = {dict(labels)["group"] for _, labels in found if "group" in dict(labels)}
        assert one(found, "kafka_records_rows_left_out", table="group_lag") == wanted - len(groups)
        assert f"{wanted} of {rows} rows from" in ran.err or (wanted == rows and f"{rows} rows from" in ran.err)


def test_a_report_has_every_level_and_no_names() -> None:
    ran = run("report", SEGMENTS, "--format", "openmetrics")
    found = samples(ran.out)
    levels = {level: one(found, "kafka_records_findings", level=level) for level in ("note", "low", "high", "critical")}
    assert levels["high"] == sum(
        value
        for (name, labels), value in found.items()
        if name == "kafka_records_findings_by_kind" and ("level", "high") in labels
    )
    assert levels["high"] > 0
    groups = read_table("groups", SEGMENTS).table["group_id"].to_pylist()
    assert not any(group in ran.out for group in groups)


def test_the_end_of_a_file_says_it(tmp_path: Path) -> None:
    path = tmp_path / "lag.prom"
    assert run("table", "group_lag", SEGMENTS, "--output", str(path)).status == 0
    assert samples(path.read_text("utf-8")).keys() == metrics_of("group_lag").keys()
    assert run("report", SEGMENTS, "--output", str(tmp_path / "report.prom")).status == 0
    assert {each.name for each in tmp_path.iterdir()} == {"lag.prom", "report.prom"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("groups", SEGMENTS, "--format", "openmetrics"),
            "--format openmetrics: groups has no metrics; tables with metrics: " + ", ".join(METRICS),
        ),
        (
            ("lag", SEGMENTS, "--format", "openmetrics", "--columns", "lag"),
            "--columns: --format openmetrics has its own labels: leave out --columns",
        ),
        (("lag", SEGMENTS, "--max-series", "3"), "--max-series needs --format openmetrics"),
    ],
)
def test_what_does_not_go_together(arguments: tuple[str, ...], message: str) -> None:
    ran = run("table", *arguments)
    assert (ran.status, ran.err.splitlines()[0]) == (2, f"kafka-records table: error: {message}")


# -- rules and page ----------------------------------------------------------------------------------------------------


def test_alert_rules_are_queries_over_metrics_that_there_are() -> None:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    written = {name for table in METRICS for name, _ in metrics_of(table)}
    written |= {metric.name for metrics in METRICS.values() for metric in metrics}
    written |= {name for name, _ in samples(run("report", SEGMENTS, "--format", "openmetrics").out)}
    alerts = [rule["alert"] for rule in group["rules"]]
    assert len({*alerts}) == len(alerts) > 5
    for rule in group["rules"]:
        promql_parser.parse(rule["expr"])
        named = {*re.findall(r"\bkafka_\w+", rule["expr"])}
        assert named
        assert named <= written
        assert rule["annotations"]["summary"]


def test_the_page_has_every_metric() -> None:
    page = (ROOT / "docs/metrics.md").read_text("utf-8")
    for metrics in METRICS.values():
        for metric in metrics:
            assert f"`{metric.name}`" in page
            assert ", ".join(f"`{label}`" for label in metric.labels) in page
