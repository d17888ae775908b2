"""The content of the brokers: logs that do not change, a log that grows, and a topic that is deleted and created again.
Leaders move meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import partial
from random import Random
from typing import Final, NamedTuple

from kafka import KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

STEADY: Final = "steady"
GROWING: Final = "growing"
AGAIN: Final = "again"
COMMITS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"
PARTITIONS: Final = 3
GROUPS: Final = 16
RECORDS: Final = 60
"""The number of records that are written each time the topic is created."""
_WAIT: Final = 60
_SETTLE_MS: Final = 10_000


class Written(NamedTuple):
    """The state of the topic that is created repeatedly: how often it was created, and the number of its records."""

    time: int
    records: int


class Served:
    """Fills a cluster and keeps changing it, with clients that do not use the proxies."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self._bootstrap = bootstrap.split(",")
        self._random = Random(f"served-{seed}")
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self.failures: list[BaseException] = []
        """The errors that ended threads."""
        self.grown = 0
        """The number of records of the growing log that brokers have acknowledged."""
        self.again = Written(0, 0)
        """What brokers have acknowledged of the topic that is created repeatedly."""
        self.moves = 0
        """How often a leader was moved."""

    def fill(self) -> None:
        """Create the topics, and write the logs that do not change."""
        with ExitStack() as clients:
            admin = clients.enter_context(closing(self._admin()))
            shapes = {STEADY: PARTITIONS, GROWING: 1}
            for name, count in shapes.items():
                admin.create_topics({name: {"num_partitions": count, "replication_factor": 3}}, wait_for_metadata=True)
            for packing, size in ((None, 900), ("gzip", 16_384)):
                settings = {"compression_type": packing, "batch_size": size, "linger_ms": 2}
                producer = clients.enter_context(closing(self._producer(**settings)))
                for number in range(300):
                    producer.send(STEADY, b"%d" % number * 20, b"key-%d" % (number % 50), partition=number % PARTITIONS)
                producer.flush()
            _until(lambda: _commits(admin, self._random), "no coordinator takes a commit")
            producer = clients.enter_context(closing(self._producer(transactional_id="writer")))
            producer.init_transactions()
            for number in range(3):
                producer.begin_transaction()
                producer.send(STEADY, b"in a transaction", partition=number % PARTITIONS)
                offset = {TopicPartition(STEADY, 0): OffsetAndMetadata(number, "", -1)}
                producer.send_offsets_to_transaction(offset, "in-transactions")
                (producer.abort_transaction if number % 3 == 2 else producer.commit_transaction)()
        self._create_again()

    def start(self) -> None:
        """Start the threads that let one log grow, create one topic repeatedly, and move leaders."""
        for work in (self._grow, self._recreate, self._move):
            thread = threading.Thread(target=self._run, args=(work,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Stop the threads that `start` began."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(2 * _WAIT)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.failures.append(error)

    def _admin(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=self._bootstrap, request_timeout_ms=_SETTLE_MS)

    def _producer(self, **settings: object) -> KafkaProducer:
        return KafkaProducer(bootstrap_servers=self._bootstrap, acks="all", **settings)

    def _pause(self, least: float, most: float) -> bool:
        return not self._stopped.wait(self._random.uniform(least, most))

    # -- what changes --------------------------------------------------------------------------------------------------

    def _grow(self) -> None:
        with closing(self._producer()) as producer:
            while self._pause(0.1, 1):
                with suppress(KafkaError):
                    sent = [producer.send(GROWING, b"%d" % each) for each in range(self._random.randint(1, 20))]
                    self.grown = max(self.grown, *(each.get(_WAIT).offset + 1 for each in sent))

    def _recreate(self) -> None:
        while self._pause(0.5, 4):
            self._create_again()

    def _create_again(self) -> None:
        number = self.again.time + 1
        with closing(self._admin()) as admin:
            shape = {AGAIN: {"num_partitions": 1, "replication_factor": 3}}
            self.again = Written(number, 0)

            def create() -> None:
                # A request whose answer is lost may have been carried out, so errors are expected.
                with suppress(KafkaError):
                    admin.delete_topics([AGAIN])
                admin.create_topics(shape, wait_for_metadata=True)

            _until(lambda: _works(create), f"topic {AGAIN} cannot be created")
        with closing(self._producer()) as producer:
            for each in range(RECORDS):
                sent = producer.send(AGAIN, b"%d:%d" % (number, each))
                if each % 10 == 9:
                    with suppress(KafkaError):
                        sent.get(_WAIT)
                        self.again = Written(number, each + 1)

    def _move(self) -> None:
        places = [
            *((STEADY, number) for number in range(PARTITIONS)),
            (GROWING, 0),
            *((COMMITS, number) for number in range(6)),
            *((TRANSACTIONS, number) for number in range(2)),
        ]
        with closing(self._admin()) as admin:
            while self._pause(0.2, 1.2):
                place = TopicPartition(*self._random.choice(places))
                with suppress(KafkaError):
                    admin.alter_partition_reassignments({place: self._random.sample([1, 2, 3], 3)})
                    answer = admin.elect_leaders(0, {place.topic: [place.partition]}, raise_errors=False)
                    self.moves += "error_code=0" in str(answer)


def _commits(admin: KafkaAdminClient, random: Random) -> bool:
    """Commit offsets; some are committed again, and some are deleted. Returns False if a coordinator is not available
    yet."""
    for number in range(GROUPS):
        group = f"group-{number:02}"
        for _ in range(2):
            place = TopicPartition(STEADY, random.randrange(PARTITIONS))
            offsets = {place: OffsetAndMetadata(random.randrange(400), "x" * random.randrange(90), -1)}
            if not _works(partial(admin.alter_group_offsets, group, offsets)):
                return False
        if number % 8 == 0:
            admin.delete_groups([group])
    return True


def _works(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except KafkaError:
        return False
    return True


def _until(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WAIT
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"for {_WAIT} s: {what}")
        time.sleep(0.2)
