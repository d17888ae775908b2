"""Short texts about the changes of a release."""

from __future__ import annotations

from kafka_records_codegen.evolution.changes import Change
from kafka_records_codegen.spec.versions import Versions


def sides(change: Change) -> str:
    """The present value and the former value."""
    if change.older and change.newer:
        return f"{change.newer}, was {change.older}"
    return change.newer or f"{change.older} is gone"


def versions_in_words(*versions: Versions) -> str:
    """`version 1`, `versions 0-1, 3`."""
    is_one = [len(each) for each in versions] == [1]
    return f"version{'' if is_one else 's'} {', '.join(map(str, versions))}"
