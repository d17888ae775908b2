"""Spark's own Kafka source, with its two traps set right, as raw rows.

For internal topics that source returns no row, and does not say so: its planning by an admin client leaves them out.
With `spark.sql.streaming.kafka.useDeprecatedOffsetFetching` it asks a consumer instead and finds them. `subscribe`
would have that consumer join a group, which writes records into the very topic that is read; `assign` leaves no trace,
and wants every partition by its number. (Tried with PySpark 4.2.0 and 4.3.0.)
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
    """A topic through Spark's own Kafka source, as raw rows. Needs its connector among the jars of the session.

    Parameters
    ----------
    spark
        The session. Its setting `spark.sql.streaming.kafka.useDeprecatedOffsetFetching` becomes true and stays so,
        since Spark looks at it when the query runs; other reads of Kafka in this session are planned by a consumer too.
    bootstrap
        Some brokers, `HOST:PORT[,HOST:PORT…]`.
    topic
        The topic, an internal one or another.
    isolation_level
        What this source makes of transactions, which it does not show: `read_uncommitted` gives the records of aborted
        and open ones among the others, `read_committed` leaves out the aborted and ends each partition where the first
        open one begins.
    stream
        Whether to read a stream.
    partitions
        The partitions; by default the brokers are asked which there are, by a connection of this package. A stream does
        not see partitions that are added later.
    options
        Options of that source: `startingOffsets` (`earliest` where it is not among them), `maxOffsetsPerTrigger`,
        `kafka.security.protocol` and other properties of clients.

    Returns
    -------
    DataFrame
        Rows of `kafka_records_engine.spark.raw.RAW_SCHEMA`. The source gives no control records, and tells neither
        transactions nor producers: tables whose rows depend on them refuse these rows, unless `assume` says what they
        count as. For that `read_committed` is the better choice, although it may end early.

    Raises
    ------
    ValueError, TypeError
        For an unknown isolation level, for options that are set here, and for arguments of a wrong kind.
    LogSourceError
        When no broker tells which partitions there are.

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
