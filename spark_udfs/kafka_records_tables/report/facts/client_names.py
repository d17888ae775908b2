"""Determines which client ids look like those of one application, by comparing their words without process numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from kafka_records_tables.report.facts.group_facts import MemberLife, joined_at

_COMMON: Final = 4
"""The length of the common prefix from which client ids count as those of one application."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORD: Final = re.compile(r"[a-z0-9]+")
_DIGITS: Final = re.compile(r"\d+$")
_GENERIC_WORDS: Final = """
    app application aws blue canary client cloud compute confluent consumer container default dev docker go green group
    host instance internal ip java kafka kgo librdkafka listener local localhost main new node old pod prod python
    rdkafka reader ruby sarama server service staging streamthread svc test thread worker
"""
"""Words that are not specific to an application."""
_GENERIC: Final = frozenset(_GENERIC_WORDS.split())
_DEFAULT: Final = re.compile(r"(consumer-.*-\d+|(aiokafka|kafka-python|karafka|kafkajs|kafka-go|ruby-kafka).*|.*@.*)$")
"""Default client ids: `consumer-GROUP-N` of Kafka's own client, and the defaults of other libraries."""


def words_of(client_id: str | None) -> frozenset[str]:
    """The words of a client id that can name an application; empty for a default client id."""
    name = _UUID.sub("", (client_id or "").lower())
    if _DEFAULT.match(name):
        return frozenset()
    words = [_DIGITS.sub("", each) for each in _WORD.findall(name)]
    return frozenset(each for each in words if len(each) > 1 and each.isalpha() and each not in _GENERIC)


def by_application(lives: Sequence[MemberLife]) -> list[list[MemberLife]]:
    """Members by the application that their client ids name, in the order in which the first member of each joined.
    Client ids with a common word or prefix, directly or through others, belong to one application. Members whose client
    ids name no application are left out."""
    found: list[tuple[frozenset[str], list[MemberLife]]] = []
    for life in lives:
        words = words_of(life.client_id)
        if not words:
            continue
        own = [each for each in found if _are_alike(each[0], words)]
        rest = [each for each in found if not _are_alike(each[0], words)]
        one = (words.union(*(each[0] for each in own)), [member for each in own for member in each[1]] + [life])
        found = [*rest, one]
    return sorted((each[1] for each in found), key=lambda members: min(joined_at(each) for each in members))


def _are_alike(some: frozenset[str], others: frozenset[str]) -> bool:
    return any(one[:_COMMON] == other[:_COMMON] for one in some for other in others)


def together(one: Sequence[MemberLife], other: Sequence[MemberLife], until_ms: int) -> list[tuple[int, int]]:
    """The spans of time in which both had members, in milliseconds since 1970. Spans separated only by a rebalance are
    merged."""
    lives = (*one, *other)
    moments = {each.joined_ms for each in lives} | {each.left_ms for each in lives if each.left_at is not None}
    known = sorted({*(each for each in moments if each is not None), until_ms})
    spans: list[tuple[int, int]] = []
    for start, end in pairwise(known):
        if any(each.was_there(start) for each in one) and any(each.was_there(start) for each in other):
            spans = [*spans[:-1], (spans[-1][0], end)] if spans and spans[-1][1] == start else [*spans, (start, end)]
    return spans
