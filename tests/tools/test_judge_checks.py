"""Logs with records that do not fit together: Kafka's own coordinator stops at those that `checks` calls a conflict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kafka_needed import skipped_without_kafka
from tests.tables.cluster import Cluster
from tests.tables.histories import history
from tests.tables.planted_conflicts import PLANTED
from tools.judge.coordinators import Coordinators, program
from tools.judge.histories import History, write_log

pytestmark = [pytest.mark.maven, pytest.mark.slow]


def test_coordinators_load_what_checks_calls_sound_and_nothing_else(tmp_path: Path) -> None:
    with skipped_without_kafka():
        started = program()
    refused = {}
    with Coordinators(tmp_path, started) as coordinators:
        for number, (name, (plant, _)) in enumerate(PLANTED.items()):
            cluster = Cluster()
            plant(cluster)
            _write(tmp_path, str(number), cluster)
            coordinators.answer(str(number))
            ((_, (first, *_)),) = History(tmp_path, str(number)).cuts.items()
            if first["question"] == "load":
                refused[name] = first["error"]
    assert refused.keys() == {name for name, (_, why) in PLANTED.items() if why is not None}
    assert all(refused.values()), json.dumps(refused)


def _write(folder: Path, name: str, cluster: Cluster) -> None:
    told = history("0001").header
    *_, asked = told["questions"]
    rows = cluster.table().to_pylist()
    header = told | {"history": name, "questions": [asked | {"cut": len(rows) - 1}]}
    common = {"timestamp_ms": 1_700_000_000_000, "producer_id": -1, "producer_epoch": -1, "transactional": False}
    lines = [
        {
            "offset": row["offset"],
            "batch": row["offset"],
            "key": row["key"].hex(),
            "value": None if row["value"] is None else row["value"].hex(),
            **common,
        }
        for row in rows
    ]
    write_log(folder, header, lines)
