"""tests/data/kafka/described.json: the content of message_specs when it last followed a release.

`records` and `messages` list them by folder. `after_the_fact_sheet` has the changes of records by releases since
kafka-records.json was extracted from Kafka: `fields` by message, and the `messages` that are new or have other
versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution.changes import Change
from kafka_records_codegen.loader import load

_FIELDS = (rules.FIELD_ADDED, rules.TAG_ADDED)


def revise(path: Path, specs: Path, changes: Iterable[Change]) -> None:
    """Update the lists for the folder of specs and the changes of a release."""
    model = load(specs)
    kept = json.loads(path.read_text(encoding="utf-8"))
    kept["records"] = {
        folder.path: {str(record.type): record.name for record in sorted(folder.records, key=lambda it: it.type)}
        for folder in model.folders
        if folder.records
    }
    kept["messages"] = {
        folder.path: sorted(message.name for message in folder.messages)
        for folder in model.folders
        if not folder.records
    }
    stored = {message.name for folder in model.folders if folder.records for message in folder.messages}
    later = kept["after_the_fact_sheet"]
    for change in changes:
        if change.message not in stored:
            continue
        if change.rule in _FIELDS:
            later["fields"].setdefault(change.message, []).append(change.field)
        elif not change.field and change.rule is not rules.COMMENT:
            later["messages"].append(change.message)
    later["fields"] = {name: sorted(set(fields)) for name, fields in sorted(later["fields"].items())}
    later["messages"] = sorted(set(later["messages"]))
    path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
