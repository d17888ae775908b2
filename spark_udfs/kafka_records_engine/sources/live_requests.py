"""Coordinators' answers about groups as a source, for clusters where the coordinators' topics may not be read. No
records of groups are read, so only the present is known, as far as requests return it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from kafka_records_engine.findings import MISSING_RIGHT, UNREACHABLE_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers.cluster import Cluster
from kafka_records_engine.sources._brokers.failures import BrokerFailure
from kafka_records_engine.sources._brokers.transactions import KnownTransaction, unended_transactions
from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.fetched_offsets import FetchedOffsets, FetchedShares
from kafka_records_engine.sources.group_descriptions import GroupDescription
from kafka_records_engine.sources.group_requests import GroupRequests, ListedGroup
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.right_words import lacks_right
from kafka_records_engine.sources.time_limit import now_ms
from kafka_records_engine.sources.waiting import pause
from kafka_records_runtime.kafka.error_codes import ErrorCode

T = TypeVar("T")

_GONE: Final = ErrorCode.GROUP_ID_NOT_FOUND.name
_NO_GROUP: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED.name
_NO_TOPIC: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED.name
_DEAD: Final = "Dead"
_UNLISTED: Final = "other groups are not listed, and brokers do not say whether there are any"

_NOT_LISTED: Final = "groups that are not listed have no row"

_CLASSIC: Final = "classic"
_SHARE: Final = "share"


class AskedGroup(NamedTuple):
    """A group, as its coordinator describes it."""

    listed: ListedGroup
    described: GroupDescription

    @property
    def kind(self) -> str:
        """classic, consumer, share or streams. Brokers before Kafka 3.8 do not report kinds; their groups are
        classic."""
        return self.listed.kind or _CLASSIC


class TwoPolls(NamedTuple):
    """The committed offsets of groups at two points in time."""

    before: Mapping[str, FetchedOffsets]
    after: Mapping[str, FetchedOffsets]
    before_ms: int
    after_ms: int
    ends_before: Mapping[tuple[str, int], int]
    """High watermarks at the first of these times, by topic and partition."""


class CoordinatorAnswers:
    """The answers of coordinators for one result. Each request is sent once, no matter how many tables need it.

    Methods raise LogSourceError if there is no answer at all, and report a finding if only some answers are missing.
    """

    def __init__(self, source: LiveBrokers, requests: GroupRequests, cluster: Cluster) -> None:
        self._source = source
        self._requests = requests
        self._cluster = cluster
        self._kept: dict[object, tuple[Any, list[Finding], int]] = {}

    def groups(self, wanted: Sequence[str] | None, context: Context) -> Mapping[str, AskedGroup]:
        """The given groups, or all groups, by id. Groups that are not listed, or that ended in the meantime, are left
        out."""
        return self._once(("groups", wanted), lambda found: self._groups(wanted, found), context)

    def offsets(self, wanted: Sequence[str] | None, context: Context) -> Mapping[str, FetchedOffsets]:
        """The committed offsets of the given groups, or of all, without offsets pending in transactions."""

        def ask(found: list[Finding]) -> Mapping[str, FetchedOffsets]:
            return self._offsets(self._committing(wanted, found), found)

        return self._once(("offsets", wanted), ask, context)

    def share_offsets(self, wanted: Sequence[str] | None, context: Context) -> Mapping[str, FetchedShares]:
        """The share partitions of the given groups, or of all."""

        def ask(found: list[Finding]) -> Mapping[str, FetchedShares]:
            groups = [group for group, listed in self._listed(wanted, found).items() if listed.kind == _SHARE]
            answers = self._requests.share_offsets(groups)
            return self._without_errors(answers, found, "its share partitions have no row")

        return self._once(("share_offsets", wanted), ask, context)

    def two_polls(self, wanted: Sequence[str] | None, interval_ms: int, context: Context) -> TwoPolls:
        """The committed offsets of the given groups, or of all, now and `interval_ms` later."""

        def ask(found: list[Finding]) -> TwoPolls:
            groups = self._committing(wanted, found)
            before_ms, before = now_ms(), self._offsets(groups, found)
            topics = {topic for fetched in before.values() for topic, _ in fetched.offsets}
            ends = {
                (each.topic, each.partition): each.high_watermark
                for each in self._source.log_ends(sorted(topics & {*self._source.topics()}), Context())
                if each.high_watermark is not None
            }
            left = interval_ms - (now_ms() - before_ms)
            pause(max(left, 0) / 1000)
            again: list[Finding] = []
            after_ms, after = now_ms(), self._offsets(groups, again)
            found += [each for each in again if each not in found]
            return TwoPolls(before, after, before_ms, after_ms, ends)

        return self._once(("two polls", wanted, interval_ms), ask, context)

    def transactions(self, context: Context) -> Sequence[KnownTransaction]:
        """The transactional ids with an unfinished transaction that this user may describe."""

        def ask(found: list[Finding]) -> Sequence[KnownTransaction]:
            try:
                return unended_transactions(self._cluster)
            except BrokerFailure as failed:
                impact = "transactions that are open in no log have no row"
                found.append(Finding("damage", UNREACHABLE_LOG, failed.detail, impact, file=failed.address))
                return ()

        return self._once(("transactions",), ask, context)

    # -- asking --------------------------------------------------------------------------------------------------------

    def _once(self, what: object, ask: Callable[[list[Finding]], T], context: Context) -> T:
        """The result of `ask`, cached after the first call. Findings go to the context in any case."""
        if what not in self._kept:
            found: list[Finding] = []
            asked_ms = now_ms()
            self._kept[what] = ask(found), found, asked_ms
        answer: T
        answer, found, asked_ms = self._kept[what]
        for finding in found:
            context.report(finding)
        context.counts.note_moment("answers", asked_ms)
        return answer

    def _groups(self, wanted: Sequence[str] | None, found: list[Finding]) -> Mapping[str, AskedGroup]:
        listed = self._listed(wanted, found)
        if wanted is None and self._may_describe_cluster() is False:
            what = lacks_right(self._cluster.who, "DESCRIBE", "the cluster")
            found.append(Finding("note", MISSING_RIGHT, what, _UNLISTED, file=self._source.name))
        described = self._requests.describe({group: each.kind for group, each in listed.items()})
        there = {
            group: told
            for group, told in described.items()
            if told.error != _GONE and told.fields.get("group_state") != _DEAD
        }
        known = self._without_errors(there, found, "its members and their partitions are unknown")
        nothing = {group: GroupDescription({}) for group in there.keys() - known.keys()}
        return {group: AskedGroup(listed[group], told) for group, told in {**known, **nothing}.items()}

    def _may_describe_cluster(self) -> bool | None:
        try:
            return self._cluster.may_describe()
        except BrokerFailure:
            return None  # the next request reports the error

    def _listed(self, wanted: Sequence[str] | None, found: list[Finding]) -> Mapping[str, ListedGroup]:
        listed = self._once(("list",), lambda _: self._requests.groups(), Context())
        why = self._requests.unlisted
        if why is not None and (wanted is None or not listed.keys() >= {*wanted}):
            found.append(Finding("damage", UNREACHABLE_LOG, why, _NOT_LISTED, file=self._source.name))
        return listed if wanted is None else {group: listed[group] for group in wanted if group in listed}

    def _committing(self, wanted: Sequence[str] | None, found: list[Finding]) -> Iterable[str]:
        """The groups that may have committed offsets: all kinds except share groups."""
        return [group for group, listed in self._listed(wanted, found).items() if listed.kind != _SHARE]

    def _offsets(self, groups: Iterable[str], found: list[Finding]) -> Mapping[str, FetchedOffsets]:
        answers = self._requests.fetch(dict.fromkeys(groups), stable=False)
        return self._without_errors(answers, found, "its committed offsets have no row")

    def _without_errors(self, answers: Mapping[str, T], found: list[Finding], impact: str) -> dict[str, T]:
        """The answers about groups without errors. Reports a finding for each answer, or part of one, that is an
        error."""
        known = {}
        for group, answer in answers.items():
            error = getattr(answer, "error", None)
            if error is None:
                known[group] = answer
            elif error != _GONE:
                found.append(self._finding(f"group {group}", error, impact))
            for (topic, partition), why in getattr(answer, "errors", {}).items():
                what = f"group {group}, {topic}-{partition}"
                found.append(self._finding(what, why, "the partition has no row", topic, partition))
        return known

    def _finding(
        self, what: str, error: str, impact: str, topic: str | None = None, partition: int | None = None
    ) -> Finding:
        who, place = self._cluster.who, self._source.name
        if error == _NO_GROUP:
            text = lacks_right(who, "DESCRIBE", what)
            return Finding("damage", MISSING_RIGHT, text, impact, file=place)
        if error == _NO_TOPIC:
            on = "its topics" if topic is None else f"topic {topic}"
            text = lacks_right(who, "DESCRIBE", on, f"describe a topic of {what}")
            return Finding("damage", MISSING_RIGHT, text, impact, topic, file=place)
        return Finding("damage", UNREACHABLE_LOG, f"{what}: {error}", impact, topic, partition, file=place)


class LiveRequests(LiveBrokers):
    """The state of a running cluster, from requests to its coordinators, for clusters where their topics may not be
    read.

    Its arguments are those of LiveBrokers. It is a source for tables that requests can fill. Other tables raise
    LogSourceError, which says why requests cannot fill them. Each reading sends the requests again, from this process
    even with Spark.
    """

    def __repr__(self) -> str:
        return f"LiveRequests({self.name!r})"

    def partitions(self, topic: str) -> list[BrokerPartition]:
        """Always raises LogSourceError, because requests return no records."""
        raise LogSourceError(
            self.name, f"requests to coordinators return no records of {topic}: read its log with LiveBrokers"
        )

    def coordinator_answers(self) -> CoordinatorAnswers:
        """The coordinators' answers from now on, for one result."""
        requests = GroupRequests(self.name, self._config, timeout=self._session.limit, goes_on=True)
        return CoordinatorAnswers(self, requests, Cluster(self._bootstrap, self._config, self._session))
