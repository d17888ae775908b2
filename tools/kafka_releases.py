"""The number of message specs in each known release of Kafka.

`kafka_records_codegen.evolution.kafka_releases` fetches them into the user's cache directory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

COUNTS: Final = Path(__file__).with_suffix(".json")

SPEC_COUNTS: Final[Mapping[str, Mapping[str, int]]] = json.loads(COUNTS.read_text(encoding="utf-8"))
"""By release, the oldest first, the modules whose jars contain its specs, with the number of specs. `make follow` adds
to the file.

The records of coordinators were in the jar of the broker before they had modules of their own. Kafka did not publish
the share coordinator of 3.9.
"""

DESCRIBED: Final = tuple(SPEC_COUNTS)[-1]
"""The release that message_specs describes."""

RELEASE_VARIABLE: Final = "KAFKA_RECORDS_KAFKA"

WITHOUT_TOOLS: Final = frozenset({"4.4.0"})
"""The releases for which Maven has no kafka-streams, kafka-tools or connect-runtime."""

WHOLE: Final = next(release for release in reversed(tuple(SPEC_COUNTS)) if release not in WITHOUT_TOOLS)
"""The newest release of which all modules were published."""

LATEST: Final = os.environ.get(RELEASE_VARIABLE, WHOLE)
"""The release of Kafka whose brokers and classes tools and tests start; `$KAFKA_RECORDS_KAFKA` names another one."""

RECORD_MODULES: Final = frozenset(
    {"kafka_2.13", "kafka-group-coordinator", "kafka-share-coordinator", "kafka-transaction-coordinator"}
)
"""The modules that contain only records of coordinators."""
