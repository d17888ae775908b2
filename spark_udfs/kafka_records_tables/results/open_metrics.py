"""Writes rows of some tables as metrics in the OpenMetrics text format. All metrics are gauges, so the text is also
valid in the older Prometheus format, which node_exporter's textfile collector reads. Dashboards use the names
`kafka_consumergroup_…` and expect these labels: `lag` and `current_offset` as in kafka_exporter (`consumergroup`),
`group_…` as in kafka-lag-exporter and klag-exporter (`group`). Metrics that no other exporter has begin with
`kafka_records_`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import add
from typing import TYPE_CHECKING, Any, Final, TextIO

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest

from kafka_records_runtime.text.printable import printable
from kafka_records_tables.results.last_run import LAST_RUN

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]

_ROWS: Final = 1024
"""The number of rows to convert to Python objects at once. Of a million rows, only a few become series."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A gauge, and how to get its value from a row. `merged` combines the values of rows with the same labels."""

    name: str
    about: str
    labels: Mapping[str, str]
    """By label, the column with its values."""
    value: str | Callable[[Row], float | None]
    """A column, or a function of the row. A row with the value None has no sample."""
    scale: float = 1
    merged: Callable[[float, float], float] = max
    """How the values of two rows with the same labels are combined."""

    def of(self, row: Row) -> float | None:
        """The value of a row."""
        value = row[self.value] if isinstance(self.value, str) else self.value(row)
        return None if value is None else value * self.scale

    def labels_of(self, row: Row) -> tuple[str, ...]:
        """The values of the labels. Null becomes the empty text, which in OpenMetrics means that the label is
        absent."""
        return tuple("" if row[column] is None else str(row[column]) for column in self.labels.values())


_MS: Final = 0.001
_PLACE: Final = {"topic": "topic", "partition": "partition"}
_OFFSET: Final = {"group": "group_id", **_PLACE}
_KAFKA_EXPORTER: Final = {"consumergroup": "group_id", **_PLACE}
_GROUP: Final = {"group": "group_id"}
_TRANSACTION: Final = {"transactional_id": "transactional_id", "producer_id": "producer_id"}


def _lag_ms(row: Row) -> float | None:
    """A row without records to read has no wait."""
    nothing_left = row["unread"] == 0 or row["lag"] == 0
    return 0 if row["lag_ms"] is None and nothing_left else row["lag_ms"]


def _one(_: Row) -> float:
    return 1


def _problem(row: Row) -> float | None:
    return None if row["problem"] is None else 1


def _expiry_of(kind: str) -> Callable[[Row], float | None]:
    return lambda row: row["expires_timestamp_ms"] if row["kind"] == kind else None


METRICS: Final[Mapping[str, tuple[Metric, ...]]] = {
    "lag": (
        Metric("kafka_consumergroup_current_offset", "Committed offset of the group", _KAFKA_EXPORTER, "offset"),
        Metric(
            "kafka_consumergroup_lag",
            "Number of offsets from the committed offset to the end of the log",
            _KAFKA_EXPORTER,
            "lag",
        ),
        Metric("kafka_consumergroup_group_lag_seconds", "Age of the first unread record", _OFFSET, _lag_ms, _MS),
        Metric(
            "kafka_records_unread_records",
            "Records left to read, without transaction markers and aborted records",
            _OFFSET,
            "unread",
        ),
        Metric("kafka_records_lost_records", "Offsets deleted before they were consumed", _OFFSET, "lost"),
        Metric(
            "kafka_records_margin_seconds",
            "Time until the topic may delete the first unread record",
            _OFFSET,
            "margin_ms",
            _MS,
            merged=min,
        ),
        Metric(
            "kafka_records_lag_problem",
            "1: the committed offset has this problem",
            {**_OFFSET, "problem": "problem"},
            _problem,
        ),
    ),
    "group_lag": (
        Metric("kafka_consumergroup_group_sum_lag", "Sum of the known lags of the group", _GROUP, "lag"),
        Metric("kafka_consumergroup_group_max_lag", "Largest known lag of the group", _GROUP, "max_lag"),
        Metric("kafka_records_group_lost_records", "Offsets deleted before the group consumed them", _GROUP, "lost"),
        Metric("kafka_records_group_unknown_lags", "Partitions whose lag is unknown", _GROUP, "unknown"),
    ),
    "progress": (
        Metric(
            "kafka_records_progress",
            "1: the group is in this state in the partition; without a sample the state is unknown",
            {**_OFFSET, "state": "state"},
            _one,
        ),
        Metric(
            "kafka_records_progress_since_timestamp_seconds",
            "When the state began",
            _OFFSET,
            "since_timestamp_ms",
            _MS,
            merged=min,
        ),
        Metric(
            "kafka_records_wait_seconds",
            "How long there have been records to read without a change of the offset",
            _OFFSET,
            "wait_ms",
            _MS,
        ),
    ),
    "open_transactions": (
        Metric(
            "kafka_records_open_transaction_start_timestamp_seconds",
            "When the open transaction began",
            _TRANSACTION,
            "since_timestamp_ms",
            _MS,
            merged=min,
        ),
        Metric(
            "kafka_records_hanging_transaction",
            "1: the transaction may stay open until somebody aborts it; 0: it does not hang",
            _TRANSACTION,
            lambda row: None if row["is_hanging"] is None else int(row["is_hanging"]),
        ),
        Metric(
            "kafka_records_transaction_pending_offsets",
            "Offsets that wait for the transaction",
            _TRANSACTION,
            lambda row: len(row["holds_back"] or ()),
            merged=add,
        ),
    ),
    "expirations": (
        Metric(
            "kafka_records_offset_expiry_timestamp_seconds",
            "When a clean-up may delete the committed offset",
            _OFFSET,
            _expiry_of("offset"),
            _MS,
            merged=min,
        ),
        Metric(
            "kafka_records_group_expiry_timestamp_seconds",
            "When a clean-up may delete the group",
            _GROUP,
            _expiry_of("group"),
            _MS,
            merged=min,
        ),
    ),
    "log_files": (
        Metric("kafka_records_log_bytes", "Bytes of the files of the log", _PLACE, "bytes"),
        Metric("kafka_records_log_segments", "Files of the log that contain records", _PLACE, "segments"),
        Metric("kafka_records_log_dirty_bytes", "Bytes that wait for a cleaner", _PLACE, "dirty_bytes"),
        Metric(
            "kafka_records_log_records_to_load", "Records that a coordinator has to load", _PLACE, "records_to_load"
        ),
        Metric("kafka_records_log_superseded_records", "Records that a cleaner would drop", _PLACE, "superseded"),
    ),
}
"""The metrics of each table that can be written as metrics."""


@dataclass(slots=True)
class Samples:
    """The samples of one metric, by the values of its labels."""

    metric: Metric
    values: dict[tuple[str, ...], float] = field(default_factory=dict)

    def take(self, row: Row) -> None:
        value = self.metric.of(row)
        if value is not None:
            labels = self.metric.labels_of(row)
            before = self.values.get(labels)
            self.values[labels] = value if before is None else self.metric.merged(before, value)

    def family(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(self.metric.name, self.metric.about, labels=[*self.metric.labels])
        for labels, value in self.values.items():
            family.add_metric(labels, value)
        return family


class TableMetrics:
    """Metrics for the rows of a table, up to `most` time series. Rows beyond that are not requested."""

    def __init__(self, table: str, rows: Iterable[pa.RecordBatch], most: int) -> None:
        self._table = table
        self.rows_taken = 0
        self.rows_left_out = 0
        """The number of rows without a series, because there are too many rows. Set once all rows are counted."""
        self._samples = [Samples(metric) for metric in METRICS[table]]
        self._most = most
        for batch in rows:
            for start in range(0, batch.num_rows, _ROWS):
                for row in batch.slice(start, _ROWS).to_pylist():
                    if self._is_full():
                        return
                    for each in self._samples:
                        each.take(row)
                    self.rows_taken += 1

    def _is_full(self) -> bool:
        """Whether another row could have too many series."""
        return sum(len(each.values) for each in self._samples) + len(self._samples) > self._most

    def write(self, out: TextIO, *, is_complete: bool, now: float) -> None:
        """Write all series, and three about this run: its time, whether anything is missing, and how many rows have no
        series."""
        about_run = (
            (LAST_RUN, "When this file was written", now),
            ("kafka_records_complete", "1: nothing is missing; 0: rows are missing, or may be", int(is_complete)),
            (
                "kafka_records_rows_left_out",
                "Rows without a time series, because --max-series was reached",
                self.rows_left_out,
            ),
        )
        families = [each.family() for each in self._samples]
        for name, about, value in about_run:
            family = GaugeMetricFamily(name, about, labels=["table"])
            family.add_metric([self._table], value)
            families.append(family)
        write_families(families, out)


@dataclass(frozen=True, slots=True)
class _Collected:
    """Returns the families, as the library requests them from a registry."""

    families: Iterable[GaugeMetricFamily]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self.families


def write_families(families: Iterable[GaugeMetricFamily], out: TextIO) -> None:
    """Write the metrics as text. On a terminal, non-printable characters are escaped."""
    text = generate_latest(_Collected(families)).decode("utf-8")  # type: ignore[no-untyped-call]
    out.write("\n".join(map(printable, text.split("\n"))) if out.isatty() else text)
