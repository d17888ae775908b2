"""Finds layouts that users could not rely on yet, because Kafka had released the feature only as early access.

A spec may say this itself, with `latestVersionUnstable` (in a request, also for its response) or in the comment at its
start. `FEATURES` lists messages whose specs in Kafka do not say it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kafka_records_codegen.evolution.kafka_releases import release_order
from kafka_records_codegen.evolution.sides import Side

_SAYS_SO: Final = re.compile(r"subject\s+to\s+non-backwards?-compatible\s+changes", re.IGNORECASE)

_KRAFT: Final = "KRaft was early access before 3.3 (KIP-833)"


@dataclass(frozen=True)
class Feature:
    """Messages that were early access before the release `stable`. `messages` is a pattern for their whole names. With
    a `type`, it applies only to messages of that type."""

    messages: str
    stable: str
    why: str
    type: str = ""

    def is_about(self, side: Side) -> bool:
        return self.type in ("", side.spec.type) and re.fullmatch(self.messages, side.name) is not None


FEATURES: Final = (
    Feature(
        r"ConsumerGroup(?!Protocol)\w+(?:Key|Value)|ConsumerGroup(?:Heartbeat|Describe)(?:Request|Response)",
        "4.0.0",
        "KIP-848, the consumer group protocol, has been stable since 4.0",
    ),
    Feature(
        r"Share\w+(?:Key|Value)|\w*Share(?:Group|Fetch|Acknowledge)\w*(?:Request|Response)",
        "4.2.0",
        "KIP-932, share groups, has been stable since 4.2",
    ),
    Feature(
        r"StreamsGroup\w+(?:Key|Value|Request|Response)",
        "4.2.0",
        "KIP-1071, the streams rebalance protocol, has been stable since 4.2",
    ),
    Feature(
        r"RemoteLog\w+Record|RemotePartition\w+Record", "3.9.0", "KIP-405, tiered storage, has been stable since 3.9"
    ),
    Feature(r"\w+Record", "3.3.0", _KRAFT, type="metadata"),
    Feature(r"LeaderChangeMessage|Snapshot(?:Header|Footer)Record", "3.3.0", _KRAFT),
    Feature("DelegationTokenRecord", "3.6.0", "KRaft has had delegation tokens since 3.6 (KAFKA-15219)"),
)


def early_access(side: Side, versions: Iterable[int]) -> str:
    """Why users could not rely on the layout of these versions of the older state; empty if there is no reason."""
    if _SAYS_SO.search(side.spec.history):
        return "the comment of the older spec says that it is subject to change"
    unstable = side.file.spec.latest_version_unstable or _request_is_unstable(side)
    if unstable and set(versions) <= {side.spec.versions.highest}:
        return f"version {side.spec.versions.highest} of the request was unstable"
    release = side.specs.release
    if release is not None:
        for feature in FEATURES:
            if feature.is_about(side) and release_order(release) < release_order(feature.stable):
                return feature.why
    return ""


def _request_is_unstable(side: Side) -> bool:
    """Whether this is the response to a request whose newest version is unstable."""
    if side.spec.type != "response":
        return False
    request = side.specs.loaded.files.get(side.name.removesuffix("Response") + "Request")
    if request is None or not request.spec.latest_version_unstable:
        return False
    return request.spec.versions.highest == side.spec.versions.highest
