"""Groups of every kind on a real broker. Their members do not change, so the state of their coordinator does not
change.

Members are simulated by requests, so no Kafka client is needed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any, Final, Self

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from tests.broker.clients import annotated, commit, create_topics, wait_until
from tests.broker.members import Asking, ClassicMember

PREFIX: Final = "every-"
HOSTILE: Final = PREFIX + '\x1b[31m\'; DROP "t" \u202e\n{0} é💥 \t<b>'
GONE: Final = PREFIX + "gone"

_LEAVES: Final = -1
_NO_TASKS: Final[Mapping[str, Any]] = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}


@contextmanager
def every_group(
    bootstrap: str, admin: KafkaAdminClient, kinds: Collection[str] = ("consumer", "share", "streams"), copies: int = 1
) -> Iterator[list[str]]:
    """Yields the ids of the groups. The topics are every_a and every_b, with `copies` replicas. `kinds` are the newer
    kinds of groups to make."""
    ask = Asking(bootstrap)
    create_topics(admin, copies, every_a=3, every_b=1)
    with closing(KafkaProducer(bootstrap_servers=bootstrap.split(","))) as producer:
        for number in range(40):
            producer.send("every_a", b"x", partition=number % 3)
        producer.send("every_b", b"x").get(10)
    with ExitStack() as clients:
        _simple(admin)
        _classic(ask, clients)
        _transactions(bootstrap, clients)
        members = list(_consumer(ask, admin, clients)) if "consumer" in kinds else []
        members += _share(ask) if "share" in kinds else ()
        members += _streams(ask) if "streams" in kinds else ()
        clients.enter_context(_alive(members))
        yield _groups(admin)
    # Later tests expect that nothing is left on this broker.
    wait_until(lambda: not _in_use(admin), "a group still has members")
    admin.delete_groups(_groups(admin))


def _groups(admin: KafkaAdminClient) -> list[str]:
    return sorted(group["group_id"] for group in admin.list_groups() if group["group_id"].startswith(PREFIX))


def _in_use(admin: KafkaAdminClient) -> list[str]:
    listed = [group for group in admin.list_groups() if group["group_id"].startswith(PREFIX)]
    return [group["group_id"] for group in listed if group["group_state"] != "Empty"]


@contextmanager
def _alive(members: list[Member]) -> Iterator[None]:
    """Send heartbeats often enough for the session timeout. At the end, all members leave."""
    stopped = threading.Event()

    def beat() -> None:
        while not stopped.wait(5):
            for each in members:
                each.beat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        for each in members:
            each.leaves()


def _simple(admin: KafkaAdminClient) -> None:
    commit(admin, f"{PREFIX}simple", {("every_a", 0): 3, ("every_a", 2): 0, ("every_b", 0): 1}, "a note")
    commit(admin, HOSTILE, {("every_a", 1): 5}, HOSTILE)
    commit(admin, GONE, {("every_a", 1): 5})
    admin.delete_groups([GONE])


def _classic(ask: Asking, clients: ExitStack) -> None:
    first, static = (ClassicMember(ask, f"{PREFIX}classic", {"every_a": 3}, each) for each in (None, "static-1"))
    clients.callback(static.leaves)
    clients.callback(first.leaves)
    first.joins(static)
    first.commit({**dict.fromkeys(first.partitions, 2), ("every_b", 0): 0}, "of a topic that nobody subscribes to")
    left = ClassicMember(ask, f"{PREFIX}left", {"every_a": 3, "every_b": 1})
    left.joins()
    left.commit({("every_a", 0): 7})
    left.leaves()


def _transactions(bootstrap: str, clients: ExitStack) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap.split(","),
        transactional_id=f"{PREFIX}txn",
        linger_ms=0,
        transaction_timeout_ms=600_000,
    )
    clients.enter_context(closing(producer))
    producer.init_transactions()
    for offset, ends in ((5, producer.commit_transaction), (8, producer.abort_transaction), (9, None)):
        producer.begin_transaction()
        producer.send("every_b", b"in a transaction").get(10)
        producer.send_offsets_to_transaction(annotated({("every_a", 0): offset}), f"{PREFIX}in-transactions")
        if ends is not None:
            ends()
    producer.flush()
    clients.callback(producer.abort_transaction)


class Member:
    """A member of a group of a newer kind. It takes over its target assignment, and then does not change."""

    def __init__(self, ask: Asking, kind: str, group: str, member: str, **first: Any) -> None:
        self._ask, self._kind = ask, kind
        self._ids = {"group_id": group, "member_id": member}
        self._first, self._epoch, self._has = first, 0, dict.fromkeys(_GIVEN[kind])

    def joins(self) -> Self:
        """Join, and send heartbeats until the member has its target assignment."""
        for _ in range(50):
            epoch = self._epoch
            self.beat()
            if epoch == self._epoch and any(map(bool, self._has.values())):
                return self
            time.sleep(0.05)
        raise AssertionError(f"{self._ids} has nothing")

    def beat(self) -> None:
        """Send a heartbeat with the member's current assignment."""
        more = self._first if self._epoch == 0 else {"rebalance_timeout_ms": -1, **self._has}
        if self._kind == "Share" and self._epoch:
            more = {}
        answer = self._ask(f"{self._kind}GroupHeartbeat", _VERSIONS[self._kind], **self._ids, member_epoch=self._epoch,
                           **more, **({"instance_id": self._first["instance_id"]} if self._epoch and
                                      "instance_id" in self._first else {}))  # fmt: skip
        self._epoch = answer["member_epoch"]
        given = answer if self._kind == "Streams" else answer["assignment"]
        for name in self._has:
            if given is not None and given[name] is not None:
                self._has[name] = given[name]

    @property
    def epoch(self) -> int:
        """The epoch that the member has reached."""
        return self._epoch

    def leaves(self) -> None:
        """Leave the group."""
        more = _NO_TASKS if self._kind == "Streams" else {}
        self._ask(f"{self._kind}GroupHeartbeat", _VERSIONS[self._kind], **self._ids, member_epoch=_LEAVES, **more)


_GIVEN: Final = {
    "Consumer": ("topic_partitions",),
    "Share": ("topic_partitions",),
    "Streams": ("active_tasks", "standby_tasks", "warmup_tasks"),
}
_VERSIONS: Final = {"Consumer": 1, "Share": 1, "Streams": 0}


def _consumer(ask: Asking, admin: KafkaAdminClient, clients: ExitStack) -> Iterator[Member]:
    def member(group: str, member: str, **first: Any) -> Member:
        fields = {"rebalance_timeout_ms": 60_000, "topic_partitions": (), "rack_id": "rack-1", **first}
        return Member(ask, "Consumer", group, member, **fields).joins()

    group = f"{PREFIX}consumer"
    static = member(group, "member-1", subscribed_topic_names=("every_a", "every_b"), instance_id="static-2")
    partitions = [{"partition_index": 0, "committed_offset": 4, "committed_leader_epoch": 0, "committed_metadata": ""}]
    ask(
        "OffsetCommit",
        9,
        group_id=group,
        generation_id_or_member_epoch=static.epoch,
        member_id="member-1",
        group_instance_id="static-2",
        topics=[{"name": name, "partitions": partitions} for name in ("every_a", "every_b")],
    )
    yield static
    yield member(f"{PREFIX}regex", "member-2", subscribed_topic_names=(), subscribed_topic_regex="every_[ab]")
    # A member of the classic protocol in a group of the newer one.
    first = member(f"{PREFIX}mixed", "member-3", subscribed_topic_names=("every_b",))
    classic = ClassicMember(ask, f"{PREFIX}mixed", {"every_a": 3})
    clients.callback(classic.leaves)
    classic.joins()
    first.joins()
    yield first
    member(f"{PREFIX}emptied", "member-4", subscribed_topic_names=("every_b",)).leaves()
    commit(admin, f"{PREFIX}emptied", {("every_b", 0): 0})


def _share(ask: Asking) -> Iterator[Member]:
    yield Member(ask, "Share", f"{PREFIX}share", "sharer-1", subscribed_topic_names=("every_a",)).joins()
    Member(ask, "Share", f"{PREFIX}share-emptied", "sharer-2", subscribed_topic_names=("every_b",)).joins().leaves()
    topics = [{"topic_name": "every_b", "partitions": [{"partition_index": 0, "start_offset": 1}]}]
    ask("AlterShareGroupOffsets", 0, group_id=f"{PREFIX}share-emptied", topics=topics)


def _streams(ask: Asking) -> Iterator[Member]:
    names = ("source_topic_regex", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics")
    part = {"subtopology_id": "0", "source_topics": ("every_a",), "copartition_groups": (), **dict.fromkeys(names, ())}

    def member(group: str, member: str, **first: Any) -> Member:
        fields = {
            "rebalance_timeout_ms": 60_000,
            "topology": {"epoch": 3, "subtopologies": [part]},
            "process_id": "process-1",
            "client_tags": [{"key": "zone", "value": "a"}],
            **_NO_TASKS,
        }
        return Member(ask, "Streams", group, member, **fields, **first).joins()

    yield member(f"{PREFIX}streams", "streamer-1", user_endpoint={"host": "localhost", "port": 8080})
    member(f"{PREFIX}streams-emptied", "streamer-2").leaves()
