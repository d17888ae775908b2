"""How many message specs each known release of Kafka holds, and what tools need to fetch them.

`kafka_records_codegen.evolution.kafka_releases` fetches; what it fetched stays in the user's cache directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_records_codegen.evolution.kafka_releases import (
    MODULES,
    FetchError,
    alone_with_maven,
    cache_folder,
    extract_specs,
    fetch_jar,
    fetch_specs,
    folder_name,
    is_older_dialect,
    keep,
)

__all__ = [
    "LATEST",
    "MODULES",
    "RECORD_MODULES",
    "SPEC_COUNTS",
    "FetchError",
    "alone_with_maven",
    "cache_folder",
    "extract_specs",
    "fetch_jar",
    "fetch_specs",
    "folder_name",
    "is_older_dialect",
    "keep",
]

SPEC_COUNTS: Final[Mapping[str, Mapping[str, int]]] = {
    # The records of coordinators were in the jar of the broker before they had modules of their own. Kafka did not
    # publish the share coordinator of 3.9.
    "2.8.2": {
        "kafka-clients": 136,
        "kafka-metadata": 14,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka_2.13": 6,
    },
    "3.5.2": {
        "kafka-clients": 146,
        "kafka-metadata": 20,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 16,
        "kafka-storage": 4,
        "kafka_2.13": 2,
    },
    "3.7.2": {
        "kafka-clients": 158,
        "kafka-metadata": 25,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 16,
        "kafka-storage": 4,
        "kafka_2.13": 2,
    },
    "3.9.1": {
        "kafka-clients": 186,
        "kafka-metadata": 25,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 22,
        "kafka-storage": 4,
        "kafka-transaction-coordinator": 2,
    },
    "4.0.0": {
        "kafka-clients": 186,
        "kafka-metadata": 26,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 32,
        "kafka-storage": 5,
        "kafka-transaction-coordinator": 2,
        "kafka-share-coordinator": 4,
    },
    "4.1.1": {
        "kafka-clients": 197,
        "kafka-metadata": 26,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 44,
        "kafka-storage": 5,
        "kafka-transaction-coordinator": 2,
        "kafka-share-coordinator": 4,
    },
    "4.2.0": {
        "kafka-clients": 197,
        "kafka-metadata": 26,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 44,
        "kafka-storage": 5,
        "kafka-transaction-coordinator": 2,
        "kafka-share-coordinator": 4,
    },
    "4.3.1": {
        "kafka-clients": 198,
        "kafka-metadata": 26,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 44,
        "kafka-storage": 5,
        "kafka-transaction-coordinator": 2,
        "kafka-share-coordinator": 4,
    },
}
"""Release → the modules whose jars hold its specs → how many."""

LATEST: Final = "4.3.1"

RECORD_MODULES: Final = frozenset(
    {"kafka_2.13", "kafka-group-coordinator", "kafka-share-coordinator", "kafka-transaction-coordinator"}
)
"""Modules that hold nothing but the records of coordinators."""
