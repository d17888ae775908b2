"""Runs a real broker that serves existing log segments: captured ones, or those of `write_segments`.

    with serving(Path("tests/data/topics/kafka-4.3/segments")) as broker:
        LiveBrokers(broker.bootstrap)

The topics are created, the broker is stopped, its segments are replaced by copies of the given ones, and it is started
again. Meanwhile nothing is cleaned or deleted by age, and no offset expires. A coordinator that leads such a partition
loads it, and may append to it, because members of its groups do not come back.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from kafka_records_engine.log.files.discovery import find_logs
from tools.broker import Broker

SETTINGS: Final[Mapping[str, str]] = {
    "log.cleaner.enable": "false",
    "log.retention.ms": "-1",
    "log.retention.bytes": "-1",
    "log.segment.delete.delay.ms": "86400000",
    "offsets.retention.minutes": "2147483647",
    "offsets.retention.check.interval.ms": "2147483647",
    "transactional.id.expiration.ms": "2147483647",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "2147483647",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2147483647",
    "num.recovery.threads.per.data.dir": "2",
}
"""Settings that keep a broker from changing the given logs."""

_LOG_STARTS: Final = "log-start-offset-checkpoint"
_TOPIC: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


@contextmanager
def serving(
    segments: Path,
    *,
    settings: Mapping[str, str] | None = None,
    folder: Path | None = None,
    as_they_are: bool = False,
) -> Iterator[Broker]:
    """A broker with the logs below the folder `segments`, which runs within the context.

    `settings` are added to SETTINGS; `folder` is for the broker's own files. A broker scans files without an index, and
    truncates them at damage. With `as_they_are`, it gets an index for each file, and changes nothing. Raises as
    `Broker.start`.
    """
    held = Path(tempfile.mkdtemp(prefix="serving-")) if folder is None else folder
    broker = Broker(held, settings={**SETTINGS, **(settings or {})})
    try:
        _fill(broker, segments, as_they_are)
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()
    finally:
        if folder is None:
            shutil.rmtree(held, ignore_errors=True)


def _fill(broker: Broker, segments: Path, as_they_are: bool) -> None:
    from kafka.admin import KafkaAdminClient

    logs = find_logs([segments])
    partitions: dict[str, int] = {}
    for log in logs:
        partitions[log.topic] = max(partitions.get(log.topic, 0), log.partition + 1)
    plain = Broker(broker.folder, settings=SETTINGS)
    with plain, closing(KafkaAdminClient(bootstrap_servers=plain.bootstrap)) as admin:
        shapes = {
            name: {"num_partitions": count, "replication_factor": 1, "configs": dict(_TOPIC)}
            for name, count in partitions.items()
        }
        admin.create_topics(shapes, wait_for_metadata=True)
    for log in logs:
        place = broker.data / f"{log.topic}-{log.partition}"
        for old in place.iterdir():
            # `partition.metadata` has the id of the topic.
            if old.name != "partition.metadata":
                old.unlink()
        for file in Path(log.folder).iterdir():
            if file.suffix != ".log":
                continue
            shutil.copyfile(file, place / file.name)
            for kind in (".index", ".timeindex") if as_they_are else ():
                (place / file.name).with_suffix(kind).touch()
    starts = segments / _LOG_STARTS
    if starts.is_file():
        shutil.copyfile(starts, broker.data / _LOG_STARTS)
