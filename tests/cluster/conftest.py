"""A small cluster, the ways in which code gets to its workers, and what a topic holds according to another decoder."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_records.consumer_offsets import decode_record
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records_engine.log.reading.segment_files import find_logs, read_partition
from tests.cluster.environments import build_wheel, environment, install_wheel, pack, spark_home
from tests.cluster.submitting import Cluster
from tests.spark.conftest import built

__all__ = ["built"]


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A folder that is deleted at the end: environments are too large for pytest's temporary files."""
    with tempfile.TemporaryDirectory(prefix="kafka-records-cluster-", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


@pytest.fixture(scope="session")
def segments(topics_dir: Path) -> Path:
    return topics_dir / "kafka-4.3" / "segments"


@pytest.fixture(scope="session")
def cluster(scratch: Path, segments: Path) -> Cluster:
    jobs = scratch / "jobs"
    jobs.mkdir()
    return Cluster(spark_home(scratch / "spark"), segments, jobs)


@pytest.fixture(scope="session")
def wheel(scratch: Path) -> Path:
    """The wheel of this checkout, with the name that pip gives it."""
    return build_wheel(scratch / "dist")


@pytest.fixture(scope="session")
def zipped_wheel(scratch: Path, wheel: Path) -> Path:
    """The same file as `kafka_records.zip`, which is a name that Spark takes."""
    return Path(shutil.copyfile(wheel, scratch / "kafka_records.zip"))


@pytest.fixture(scope="session")
def bare_python(scratch: Path) -> Path:
    """An interpreter with numpy, pyarrow and nothing else."""
    return environment(scratch / "bare", "numpy", "pyarrow")


@pytest.fixture(scope="session")
def empty_python(scratch: Path) -> Path:
    """An interpreter with only Python's standard library."""
    return environment(scratch / "empty")


@pytest.fixture(scope="session")
def archived_environment(scratch: Path, wheel: Path) -> Path:
    """A packed environment with the wheel and its dependencies. The unpacked one is deleted."""
    unpacked = scratch / "to-be-packed"
    install_wheel(wheel, environment(unpacked, "numpy", "pyarrow", "google-crc32c", "msgspec"))
    archive = pack(unpacked, scratch / "environment.tar.gz")
    shutil.rmtree(unpacked)
    return archive


@pytest.fixture(scope="module")
def connect_server(cluster: Cluster, bare_python: Path) -> Iterator[str]:
    """The address of a Connect server whose workers have a bare interpreter."""
    with cluster.connect_server(str(bare_python)) as remote:
        yield remote


@pytest.fixture(scope="session")
def expected_contents(segments: Path) -> dict[str, Any]:
    """The expected report of a job about the topic, from the codecs for services, which workers do not use."""
    counts: Counter[str] = Counter()
    commits = []
    for log in find_logs([segments], "__consumer_offsets"):
        for batch in read_partition(log):
            for row in batch.select(["partition", "offset", "control", "key", "value"]).to_pylist():
                record = None if row["control"] is not None else decode_record(row["key"], row["value"])
                counts[str(record and record.record_type)] += 1
                if record and isinstance(record.value, OffsetCommitValue):
                    assert isinstance(record.key, OffsetCommitKey)
                    place = [row["partition"], row["offset"]]
                    commits.append(
                        [*place, record.key.group, record.key.topic, record.key.partition, record.value.offset]
                    )
    return {"counts": dict(counts), "commits": sorted(commits)}
