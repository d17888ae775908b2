"""Requests to group coordinators: to list and delete groups, and to fetch, delete and commit offsets.

Only this module and `transaction_requests` change anything on a cluster. Requests that do so are sent only once:
without an answer, it is unknown whether they were executed, and AnswerLost is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final, NamedTuple

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers.cluster import PASSING, Address, Cluster, Topic, named
from kafka_records_engine.sources._brokers.connection import Connection
from kafka_records_engine.sources._brokers.failures import BrokerFailure, ConnectionLost, Refused
from kafka_records_engine.sources._brokers.patience import GivenUp, Patience
from kafka_records_engine.sources._brokers.requests_sent import (
    DELETE_GROUPS,
    FIND_COORDINATOR,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
)
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources.fetched_offsets import (
    WITH_NAMES,
    CommittedOffset,
    FetchedOffsets,
    FetchedShares,
    TopicPartition,
    at_least,
    by_topic,
    fetch,
    fetch_shares,
)
from kafka_records_engine.sources.group_descriptions import GroupDescription, describe, request_of
from kafka_records_engine.sources.group_subscriptions import GroupSubscriptions, subscriptions_of
from kafka_records_engine.sources.live import Config, addresses_of, config_of
from kafka_records_engine.sources.time_limit import Timeout, limit_of
from kafka_records_runtime.kafka.error_codes import ErrorCode
from kafka_records_runtime.kafka.uuids import Uuid

_Ask = Callable[..., dict[str, tuple[int, Any]]]
"""Sends a request about `groups` over a connection. Returns an error code and the result by group."""

_PASSING: Final = PASSING - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
_UNTIL_A_FIRST_ANSWER: Final = 5.0
"""In seconds. An address where no broker has ever answered is more likely wrong than about to come back."""
COMMITS: Final = "__consumer_offsets"
"""The topic whose leaders coordinate groups."""
_MOST_GROUPS: Final = 500
"""The maximum number of groups in one request to a coordinator, so that neither side holds all answers at once."""
_WITH_KEYS: Final = 4
"""The oldest version of FindCoordinator that supports several groups (Kafka 3.0)."""


class AnswerLost(Exception):
    """A request that changes something was sent, but no answer arrived. The message says why."""


class ListedGroup(NamedTuple):
    """A group as its coordinator lists it. The state comes from the coordinator's memory, which includes rebalances."""

    protocol_type: str
    state: str
    kind: str
    """classic, consumer, share or streams; empty from brokers before Kafka 3.8."""

    @property
    def has_members(self) -> bool:
        """Whether the group has members now."""
        return self.state not in ("Empty", "")


class DescribedTopic(NamedTuple):
    """An existing topic."""

    topic_id: str
    """22 characters; all of them A if the brokers have no topic ids."""
    partitions: frozenset[int]


class GroupRequests:
    """Sends requests to the current coordinators of a cluster. For `bootstrap` and `config` see `live.LiveBrokers`.

    Methods raise LogSourceError if no broker answers, a password is wrong, a broker is older than Kafka 3.0, there was
    no progress for `default.api.timeout.ms` (five seconds until a first broker answers), or the time limit has passed.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        config: Config | None = None,
        *,
        timeout: Timeout | None = None,
        goes_on: bool = False,
    ) -> None:
        """With `goes_on`, no exception is raised if only some coordinators answer. Groups of the others then have an
        error."""
        self._cluster = Cluster(addresses_of(bootstrap), config_of(config), Session(limit_of(timeout)))
        self._coordinators: dict[str, Address] = {}
        self._goes_on = goes_on
        self.unlisted: str | None = None
        """Why groups may be missing from the last result of `groups`."""

    @property
    def name(self) -> str:
        """The addresses, as a single string."""
        return named(self._cluster.bootstrap)

    # -- asking --------------------------------------------------------------------------------------------------------

    def groups(self) -> dict[str, ListedGroup]:
        """All groups that this client may describe, by id.

        Only a group's coordinator lists it, and coordinators move. So brokers are asked again if the leaders of the
        partitions of __consumer_offsets, which are the coordinators, changed in the meantime, or if a partition has no
        leader. If this client may not describe that topic, every broker is asked twice. With `goes_on`, if groups may
        be missing, `unlisted` then contains the reason.
        """
        found: dict[str, ListedGroup] = {}
        self.unlisted, patience = None, self._patience()
        while True:
            self._begin(patience)
            before = self._again(self._leaders)
            found |= self._listed_by_all()
            if before is None:
                return found | self._listed_by_all()
            after = self._again(self._leaders)
            without = [number for number, leader in (after or {}).items() if leader < 0]
            if before == after and not without:
                return found
            why = "coordinators have moved while they listed their groups"
            if without:
                why = f"partition {without[0]} of {COMMITS} has no leader, so no broker lists its groups"
            try:
                self._wait(patience, why)
            except LogSourceError as over:
                if not self._goes_on:
                    raise
                self.unlisted = over.detail
                return found

    def _leaders(self) -> Mapping[int, int] | None:
        """The brokers that coordinate groups, by partition; None if this client may not know them or there are none
        yet."""
        for topic in self._described([COMMITS]):
            return topic.leaders
        return None

    def _listed_by_all(self) -> dict[str, ListedGroup]:
        found: dict[str, ListedGroup] = {}
        answered: set[Address] = set()

        def ask() -> None:
            # List the brokers again, because one that did not answer may be gone.
            for address in self._cluster.brokers():
                if address in answered:
                    continue
                for each in self._listed(address)["groups"]:
                    state, kind = each["group_state"], each["group_type"]
                    found[each["group_id"]] = ListedGroup(each["protocol_type"], state, kind.lower())
                answered.add(address)

        self._again(ask)
        return found

    def _listed(self, address: Address) -> dict[str, Any]:
        answer = self._cluster.asked(address, partial(Connection.ask, name=LIST_GROUPS, fields={}))
        code = ErrorCode(answer["error_code"])
        if code in _PASSING:
            raise ConnectionLost(named([address]), code.name)
        if code:
            raise Refused(named([address]), f"the broker does not list groups: {code.name}")
        return answer

    def topics(self, names: Collection[str]) -> dict[str, DescribedTopic]:
        """The topics among `names` that exist and may be described, by name."""
        found = self._again(partial(self._described, sorted(names)))
        return {each.name: DescribedTopic(str(Uuid(each.topic_id)), frozenset(each.leaders)) for each in found}

    def _described(self, names: Sequence[str]) -> list[Topic]:
        found = self._cluster.described(names)
        for each in found:
            if each.fault is not None:
                raise ConnectionLost(self.name, each.fault)
        return found

    def fetch(
        self, wanted: Mapping[str, Collection[TopicPartition] | None], *, stable: bool = True
    ) -> dict[str, FetchedOffsets]:
        """The stable offsets of the given partitions of each group; None means all partitions.

        A partition with a commit in an open transaction has the error UNSTABLE. If all partitions are requested, it is
        reported only for partitions with an older offset. Without `stable`, the older offset is returned.
        """
        ask = partial(fetch, wanted=wanted, stable=stable)
        found: dict[str, FetchedOffsets] = self._answers(
            wanted, ask, self._cluster.asked, partial(FetchedOffsets, {}, {})
        )
        return found

    def share_offsets(self, groups: Iterable[str]) -> dict[str, FetchedShares]:
        """The progress of the given share groups, in all partitions for which they have state."""
        found: dict[str, FetchedShares] = self._answers(
            groups, fetch_shares, self._cluster.asked, partial(FetchedShares, (), {})
        )
        return found

    def describe(self, kinds: Mapping[str, str]) -> dict[str, GroupDescription]:
        """The coordinators' descriptions of the given groups. `kinds` maps group ids to kinds (`ListedGroup.kind`)."""
        found: dict[str, GroupDescription] = {}
        by_request: dict[str, list[str]] = {}
        for group, kind in kinds.items():
            by_request.setdefault(request_of(kind), []).append(group)
        for name, groups in by_request.items():
            found |= self._answers(
                groups, partial(describe, name=name), self._cluster.asked, partial(GroupDescription, {})
            )
        return found

    def subscriptions(self, kinds: Mapping[str, str]) -> dict[str, GroupSubscriptions]:
        """The subscriptions of the members of the given groups. `kinds` is as in `describe`."""
        return {group: subscriptions_of(kinds[group], told) for group, told in self.describe(kinds).items()}

    # -- changing ------------------------------------------------------------------------------------------------------

    def delete_offsets(self, group: str, places: Collection[TopicPartition]) -> dict[TopicPartition, str | None]:
        """Delete offsets. Returns, for each partition, the name of the error, or None if it no longer has an offset.
        Raises AnswerLost."""
        codes: dict[TopicPartition, str | None] = self._ask_coordinator(
            group, partial(_delete_offsets, places=places), partial(dict.fromkeys, places)
        )
        return codes

    def delete_group(self, group: str) -> str | None:
        """Delete a group. Returns the name of the error, or None if the group was deleted. Raises AnswerLost."""
        code: str | None = self._ask_coordinator(group, _delete_group, str)
        return code

    def commit(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, str | None]:
        """Commit offsets without being a member. Returns, for each partition, the name of the error, or None. Raises
        AnswerLost."""
        codes: dict[TopicPartition, str | None] = self._ask_coordinator(
            group, partial(_commit, offsets=offsets), partial(dict.fromkeys, offsets)
        )
        return codes

    def _ask_coordinator(self, group: str, ask: _Ask, refused: Callable[[str], Any]) -> Any:
        return self._answers([group], ask, self._asked_once, refused)[group]

    def _asked_once(self, address: Address, ask: Callable[[Connection], dict[str, Any]]) -> dict[str, Any]:
        try:
            return self._cluster.asked_once(address, ask)
        except ConnectionLost as lost:
            self._coordinators.clear()
            raise AnswerLost(str(lost)) from None

    # -- coordinators --------------------------------------------------------------------------------------------------

    def _answers(
        self,
        groups: Iterable[str],
        ask: _Ask,
        asked: Callable[[Address, Callable[[Connection], dict[str, Any]]], dict[str, Any]],
        refused: Callable[[str], Any],
    ) -> dict[str, Any]:
        """The answer of the coordinator of each group. After a transient error, the request is repeated. If the
        coordinator is unknown, the answer is the result of `refused` for the name of the error."""
        done: dict[str, Any] = {}
        left, patience = list(groups), self._patience()
        while left:
            why = f"no coordinator reports group {left[0]}"
            try:
                self._begin(patience)
                by_address, errors = self._located(left)
                done |= {group: refused(code.name) for group, code in errors.items()}
                for address, ids in _in_parts(by_address):
                    for group, (code, result) in asked(address, partial(ask, groups=ids)).items():
                        if group not in ids:
                            continue  # not requested
                        if code in _PASSING:
                            why = f"group {group}: {ErrorCode(code).name}"
                            self._coordinators.pop(group, None)
                        else:
                            done[group] = result
            except ConnectionLost as lost:
                self._coordinators.clear()
                why = str(lost)
            except BrokerFailure as failed:
                raise LogSourceError(failed.address, failed.detail) from None
            waiting, left = len(left), [group for group in left if group not in done]
            if left:
                if len(left) < waiting:
                    patience.moved()
                try:
                    self._wait(patience, why)
                except LogSourceError as over:
                    if not self._goes_on or not done:
                        raise
                    return done | {group: refused(over.detail) for group in left}
        return done

    def _located(self, groups: list[str]) -> tuple[dict[Address, list[str]], dict[str, ErrorCode]]:
        """The groups by the address of their coordinator, and the errors of groups with an unknown coordinator."""
        unknown = [group for group in groups if group not in self._coordinators]
        errors: dict[str, ErrorCode] = {}
        if unknown:
            found, errors = self._any_broker(partial(_find, groups=unknown))
            self._coordinators |= found
        by_address: dict[Address, list[str]] = {}
        for group in groups:
            if group in self._coordinators:
                by_address.setdefault(self._coordinators[group], []).append(group)
        if not by_address and not errors:
            raise ConnectionLost(self.name, f"no coordinator for group {groups[0]} is available")
        return by_address, errors

    def _any_broker(self, ask: Callable[[Connection], Any]) -> Any:
        lost = ConnectionLost(self.name, "no broker answers")
        for address in self._cluster.bootstrap:
            try:
                return self._cluster.asked(address, ask)
            except ConnectionLost as error:
                lost = error
        raise lost

    def _again(self, ask: Callable[[], Any]) -> Any:
        """The result of `ask`, which is retried until brokers answer."""
        patience = self._patience()
        while True:
            try:
                self._begin(patience)
                return ask()
            except ConnectionLost as lost:
                self._wait(patience, str(lost))
            except BrokerFailure as failed:
                raise LogSourceError(failed.address, failed.detail) from None

    def _patience(self) -> Patience:
        return Patience(self._cluster.config, self._cluster.session)

    def _begin(self, patience: Patience) -> None:
        try:
            patience.begin()
        except GivenUp as over:
            raise LogSourceError(self.name, str(over)) from None
        self._cluster.until = patience.until

    def _wait(self, patience: Patience, why: str) -> None:
        try:
            patience.wait(why, at_most=inf if self._cluster.session.has_answered else _UNTIL_A_FIRST_ANSWER)
        except GivenUp as given_up:
            # With only one broker, the reason starts with the same address.
            raise LogSourceError(self.name, str(given_up).removeprefix(f"{self.name}: ")) from None


def _in_parts(by_address: Mapping[Address, list[str]]) -> Iterator[tuple[Address, list[str]]]:
    for address, groups in by_address.items():
        for start in range(0, len(groups), _MOST_GROUPS):
            yield address, groups[start : start + _MOST_GROUPS]


def _find(connection: Connection, groups: list[str]) -> tuple[dict[str, Address], dict[str, ErrorCode]]:
    version = at_least(connection, FIND_COORDINATOR, _WITH_KEYS)
    answer = connection.ask(FIND_COORDINATOR, {"coordinator_keys": tuple(groups)}, version)
    found: dict[str, Address] = {}
    errors: dict[str, ErrorCode] = {}
    for each in answer["coordinators"]:
        code = ErrorCode(each["error_code"])
        if not code:
            found[each["key"]] = each["host"], each["port"]
        elif code not in _PASSING:
            errors[each["key"]] = code
    return found, errors


def _delete_offsets(
    connection: Connection, groups: list[str], places: Collection[TopicPartition]
) -> dict[str, tuple[int, dict[TopicPartition, str | None]]]:
    (group,) = groups
    topics = [
        {"name": each["name"], "partitions": [{"partition_index": number} for number in each["partitions"]]}
        for each in by_topic(places, "partitions") or ()
    ]
    answer = connection.ask(OFFSET_DELETE, {"group_id": group, "topics": topics})
    code = answer["error_code"]
    if code:  # a group-level error, with no partitions listed
        return {group: (code, dict.fromkeys(places, ErrorCode(code).name))}
    return _by_partition(group, answer)


def _delete_group(connection: Connection, groups: list[str]) -> dict[str, tuple[int, str | None]]:
    answer = connection.ask(DELETE_GROUPS, {"groups_names": tuple(groups)})
    return {
        each["group_id"]: (each["error_code"], ErrorCode(each["error_code"]).name if each["error_code"] else None)
        for each in answer["results"]
    }


def _commit(
    connection: Connection, groups: list[str], offsets: Mapping[TopicPartition, CommittedOffset]
) -> dict[str, tuple[int, dict[TopicPartition, str | None]]]:
    (group,) = groups
    topics = [
        {
            "name": each["name"],
            "partitions": [
                {
                    "partition_index": number,
                    "committed_offset": offsets[each["name"], number].offset,
                    "committed_leader_epoch": offsets[each["name"], number].leader_epoch,
                    "committed_metadata": offsets[each["name"], number].metadata,
                }
                for number in each["partitions"]
            ],
        }
        for each in by_topic(offsets, "partitions") or ()
    ]
    fields = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
    version = connection.version(OFFSET_COMMIT, WITH_NAMES)
    return _by_partition(group, connection.ask(OFFSET_COMMIT, fields, version))


def _by_partition(group: str, answer: Mapping[str, Any]) -> dict[str, tuple[int, dict[TopicPartition, str | None]]]:
    """The errors of the partitions. A transient error applies to the whole group."""
    codes = {
        (topic["name"], each["partition_index"]): each["error_code"]
        for topic in answer["topics"]
        for each in topic["partitions"]
    }
    passing = [code for code in codes.values() if code in _PASSING]
    named_codes = {place: ErrorCode(code).name if code else None for place, code in codes.items()}
    return {group: (passing[0] if passing else 0, named_codes)}
