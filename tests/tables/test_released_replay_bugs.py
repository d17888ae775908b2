"""Which releases have a known bug of replays, according to their own classes: the test disassembles the method that the
fix changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kafka_records_codegen.evolution.kafka_releases import cache_folder
from kafka_records_tables.coordinator.groups.replay_bugs import PARTITION_EPOCHS, STREAMS_AFTER_COMMITS, TASK_PROCESSES
from tools.broker import jars_by_maven, java

pytestmark = [pytest.mark.maven, pytest.mark.matrix]
PACKAGE = "org.apache.kafka.coordinator.group"


def _code(release: str, name: str, method: str) -> str:
    """The disassembled methods of a class whose names have `method`."""
    wanted = [("org.apache.kafka", "kafka-group-coordinator", release)]
    folder = jars_by_maven(
        cache_folder() / "group-coordinator" / release, f"Kafka {release}", wanted, print, alone=True
    )
    program = [str(Path(java()).with_name("javap")), "-p", "-c", "-cp", f"{next(folder.glob('*.jar'))}"]
    shown = subprocess.run([*program, f"{PACKAGE}.{name}"], capture_output=True, text=True, check=True).stdout
    found = [part for part in shown.split("\n\n") if method in part.strip().partition("\n")[0]]
    assert found, f"{name} of {release} has no {method}"
    return "\n".join(found)


@pytest.mark.parametrize("release", ["4.1.0", "4.1.2", "4.2.0", "4.2.1", "4.3.1", "4.4.0"])
def test_streams_groups_after_commits(release: str) -> None:
    code = _code(release, "GroupMetadataManager", "getOrMaybeCreatePersistedStreamsGroup(")
    assert "is not a streams group" in code
    assert ("isSimpleGroup" not in code) == STREAMS_AFTER_COMMITS.is_in(release)


@pytest.mark.parametrize("release", ["4.0.0", "4.0.1", "4.1.0", "4.1.1", "4.1.2", "4.2.0", "4.3.1", "4.4.0"])
def test_epochs_of_partitions(release: str) -> None:
    code = _code(release, "modern.consumer.ConsumerGroup", "PartitionEpochs")
    assert "Cannot set the epoch of" in code
    assert ("[GroupId {}] Cannot remove the epoch" not in code) == PARTITION_EPOCHS.is_in(release)


@pytest.mark.parametrize("release", ["4.1.0", "4.1.1", "4.1.2", "4.2.0", "4.3.1", "4.4.0"])
def test_processes_of_tasks(release: str) -> None:
    code = _code(release, "streams.StreamsGroup", "TaskProcessId")
    assert "Cannot remove the process ID" in code
    assert ("[GroupId {}] Cannot remove the process ID" not in code) == TASK_PROCESSES.is_in(release)
