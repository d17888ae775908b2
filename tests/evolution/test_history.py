"""The changes between Kafka's own releases: nothing stable broke, and random bytes confirm this."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.changes import Change, SpecComparison
from kafka_records_codegen.evolution.comparing import compare
from kafka_records_codegen.evolution.spec_sets import SpecSet, UnusableSpecs, read_spec_set
from tests.evolution.judging import messages_of, survives
from tools.kafka_releases import SPEC_COUNTS

RELEASES = tuple(SPEC_COUNTS)
PAIRS = tuple(pairwise(RELEASES))
QUICK = ("3.5.2", "3.7.2")
"""The pair of releases for `make test`: early access messages changed layouts under the same version, and many messages
were stable."""

EARLY = re.compile(
    r"ConsumerGroup\w+|Share\w+|\w*ShareGroup\w+|RemoteLog\w+"
    r"|(?:ClientQuota|Config|DelegationToken|FeatureLevel|FenceBroker|UnfenceBroker|UnregisterBroker|Partition"
    r"|RegisterBroker|RemoveTopic|Topic|UserScramCredential)Record|LeaderChangeMessage"
)
"""Messages of KIP-848, KIP-932, KIP-405 and of KRaft, whose layouts changed before they were stable."""

pytestmark = pytest.mark.maven


def both(pair: tuple[str, str]) -> tuple[SpecSet, SpecSet]:
    try:
        return read_spec_set(pair[0], pair[1]), read_spec_set(pair[1], pair[0])
    except UnusableSpecs as missing:
        pytest.skip(str(missing))


every_pair = pytest.mark.parametrize(
    "pair",
    [pytest.param(pair, marks=() if pair == QUICK else pytest.mark.matrix, id=" to ".join(pair)) for pair in PAIRS],
)


@every_pair
def test_nothing_stable_broke(pair: tuple[str, str]) -> None:
    comparison = compare(*both(pair))
    assert [change for change in comparison.changes if change.rank in (Rank.BYTES, Rank.READERS)] == []
    early = {change.message for change in comparison.changes if change.rank is Rank.EARLY_ACCESS}
    assert [name for name in early if not EARLY.fullmatch(name)] == []


@pytest.mark.matrix
def test_what_4_0_dropped_is_dropped() -> None:
    comparison = compare(*both(("3.9.1", "4.0.0")))
    dropped = {
        change.message: ", ".join(map(str, change.versions))
        for change in comparison.changes
        if change.rank is Rank.VERSIONS
    }
    assert len(dropped) == 51
    assert dropped["OffsetCommitRequest"] == "0-1"
    assert dropped["FetchResponse"] == "0-3"
    assert dropped["LeaderAndIsrRequest"] == "0-7"
    assert "GroupMetadataValue" not in dropped


@pytest.mark.matrix
def test_what_4_1_put_into_another_form_has_the_same_bytes() -> None:
    comparison = compare(*both(("4.0.0", "4.1.1")))
    of_commits = [change for change in comparison.changes if change.message in ("OffsetCommitKey", "OffsetCommitValue")]
    assert {change.rule.name for change in of_commits} <= {"spec-form", "tag-added", "about", "comment"}
    legacy = [change.rule.name for change in comparison.changes if change.message == "LegacyOffsetCommitKey"]
    assert "spec-form" in legacy
    assert set(legacy) <= {"spec-form", "about"}


@every_pair
def test_bytes_say_the_same(pair: tuple[str, str]) -> None:
    """Random messages of the older release, read by the specs of the newer; those of the newer by the older."""
    older, newer = both(pair)
    comparison = compare(older, newer)
    news = {message.name: message for message in newer.loaded.model.messages}
    wrong = []
    for message in older.loaded.model.messages:
        other = news.get(message.name)
        if other is None or other.type != message.type:
            continue
        for version in set(message.versions) & set(other.versions):
            ranks = {change.rule.rank for change in about(comparison, message.name, version)}
            read = [survives(message, other, version, version, values) for values in messages_of(message, version, 4)]
            back = [survives(other, message, version, version, values) for values in messages_of(other, version, 4)]
            if Rank.BYTES in ranks:
                wrong += [(message.name, version, "does not break")] * all(read + back)
            elif not all(read) or not (all(back) or Rank.READERS in ranks):
                wrong.append((message.name, version, "breaks"))
    assert wrong == []


def about(comparison: SpecComparison, name: str, version: int) -> Iterator[Change]:
    for change in comparison.changes:
        if change.message == name and any(version in each for each in change.versions):
            yield change
