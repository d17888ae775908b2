"""Reads raw rows through Spark's own Kafka source, and works around two of its problems.

For internal topics, Spark's source silently returns no rows, because it plans with an admin client, which omits these
topics. With `spark.sql.streaming.kafka.useDeprecatedOffsetFetching`, it plans with a consumer, which finds them. With
`subscribe`, that consumer would join a group and so write records to the topic that is being read. `assign` writes
nothing, but needs the numbers of all partitions. (Tested with PySpark 4.2.0 and 4.3.0.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from kafka_records_engine import arguments
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.spark.raw import as_raw_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFFSET_FETCHING: Final = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"

_KAFKA: Final = "kafka."
_COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
_SET_HERE: Final = ("assign", "subscribe", "subscribepattern", "kafka.bootstrap.servers", "kafka.isolation.level")


def read_kafka(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    *,
    isolation_level: Literal["read_uncommitted", "read_committed"],
    stream: bool = False,
    partitions: Sequence[int] | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read a topic through Spark's own Kafka source as raw rows. The session needs that source's jars.

    Parameters
    ----------
    spark
        The session. Its setting `spark.sql.streaming.kafka.useDeprecatedOffsetFetching` becomes true and remains so,
        because Spark reads it when the query runs. Other Kafka reads in this session are then also planned with a
        consumer.
    bootstrap
        Some brokers: `HOST:PORT[,HOST:PORT…]`.
    topic
        The topic, internal or not.
    isolation_level
        How the source treats transactions, which its rows do not show: `read_uncommitted` returns the records of
        aborted and open transactions too, `read_committed` leaves out aborted ones and ends each partition at the first
        open one.
    stream
        Whether to read a stream.
    partitions
        The partitions. By default, this package requests them from the brokers over its own connection. A stream does
        not see partitions added later.
    options
        Options of the source: `startingOffsets` (default: `earliest`), `maxOffsetsPerTrigger`,
        `kafka.security.protocol` and other properties of clients.

    Returns
    -------
    DataFrame
        Rows of `kafka_records_engine.spark.raw.RAW_SCHEMA`. The source returns no control records and reports neither
        transactions nor producers, so tables that depend on them reject these rows unless `assume` says how to treat
        them. In that case, `read_committed` is the better choice, although it may end early.

    Raises
    ------
    ValueError, TypeError
        For an unknown isolation level, options that this function sets itself, or arguments of the wrong type.
    LogSourceError
        If no broker returns the partitions.

    Examples
    --------
    >>> raw = read_kafka(spark, "broker-1:9092", "__consumer_offsets", isolation_level="read_committed")
    >>> current_offsets(raw, assume="committed").show()
    """
    arguments.session("spark", spark)
    arguments.text("bootstrap", bootstrap)
    arguments.text("topic", topic)
    arguments.flag("stream", stream)
    if isolation_level not in ("read_uncommitted", "read_committed"):
        raise ValueError(f"isolation_level must be read_uncommitted or read_committed, not {isolation_level!r}")
    given = _checked_options(options)
    for name in given:
        if name.lower() in _SET_HERE:
            raise ValueError(f"the option {name} is set by read_kafka: leave it out and use the arguments")
    if partitions is None:
        properties = {
            name.lower().removeprefix(_KAFKA): value for name, value in given.items() if name.lower().startswith(_KAFKA)
        }
        partitions = [log.partition for log in LiveBrokers(bootstrap, ClientConfig.of(properties)).partitions(topic)]
    else:
        _check_partitions(partitions)
    spark.conf.set(OFFSET_FETCHING, "true")
    chosen = {
        "startingOffsets": "earliest",
        **given,
        "kafka.bootstrap.servers": bootstrap,
        "kafka.isolation.level": isolation_level,
        "assign": json.dumps({topic: list(partitions)}),
    }
    reader = spark.readStream if stream else spark.read
    return as_raw_rows(reader.format("kafka").options(**chosen).load(), columns=_COLUMNS)


def _checked_options(options: Any) -> dict[str, str]:
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"options must be a mapping of names to strings, not {type(options).__name__}")
    return dict(options or {})


def _check_partitions(partitions: Any) -> None:
    if not isinstance(partitions, Sequence) or not all(type(each) is int for each in partitions):
        raise TypeError(f"partitions must be a list of numbers, not {partitions!r}")
