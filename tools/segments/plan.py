"""The plan of a log of a coordinator topic, described by numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka_records_engine.log.format.compression import CODECS

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"

KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    OFFSETS_TOPIC: {
        "commits": "committed offsets (type 1)",
        "tombstones": "deleted offsets (type 1 without a value)",
        "group_metadata": "classic groups, empty or with members (type 2)",
        "group_tombstones": "deleted classic groups (type 2 without a value)",
        "consumer_groups": "epochs of consumer groups (type 3)",
        "consumer_members": "members of consumer groups (type 5)",
        "consumer_assignments": "what members of consumer groups have (type 8)",
        "share_groups": "epochs of share groups (type 11)",
        "share_members": "members of share groups (type 10)",
        "streams_groups": "epochs of streams groups (type 17)",
        "streams_members": "members of streams groups (type 19)",
    },
    TRANSACTIONS_TOPIC: {
        "states": "states of transactional ids (type 0)",
        "tombstones": "transactional ids that expired (type 0 without a value)",
    },
    SHARE_STATE_TOPIC: {
        "snapshots": "states of share partitions (type 0)",
        "updates": "changes of such states (type 1)",
        "tombstones": "states that were deleted (type 0 without a value)",
    },
}
"""By topic and kind of record, a description of these records."""

DEFAULT_MIX: Final[Mapping[str, Mapping[str, float]]] = {
    OFFSETS_TOPIC: {"commits": 95, "tombstones": 2, "group_metadata": 1, "consumer_members": 1, "consumer_groups": 1},
    TRANSACTIONS_TOPIC: {"states": 98, "tombstones": 2},
    SHARE_STATE_TOPIC: {"updates": 90, "snapshots": 9, "tombstones": 1},
}
"""By topic, the shares of the kinds of its records."""

DAMAGE: Final[Mapping[str, str]] = {
    "crc": "a bit of the records of a batch is flipped",
    "size": "a bit of the size of a batch is flipped",
    "offset": "a bit of the base offset of a batch, which no CRC covers, is flipped",
    "truncated": "the last batch of a partition is cut in the middle",
    "zeros": "zeros follow the last batch of a partition, as in a file whose space was reserved",
}
"""The kinds of damage for `Plan.damage`. The last two kinds count partitions, the others batches."""

COMMIT_VERSIONS: Final = (1, 3, 4)
"""The versions of values of committed offsets that can be written: with an expiry time (before 2.1), up to 4.0, from
4.1 on."""

MOST_RECORDS_PER_BATCH: Final = 30_000


class PlanError(ValueError):
    """A log cannot be written. The text says what to request instead."""


@dataclass(frozen=True)
class Plan:
    """A log to write. The same plan results in the same bytes on every machine.

    Each record gets its own millisecond, so timestamps ascend within a partition. Keys are drawn evenly. Raises
    PlanError for an impossible plan.
    """

    topic: str = OFFSETS_TOPIC
    partitions: int = 8
    records: int = 1_000_000
    """The number of ordinary records in all partitions, without the markers of transactions."""
    keys: int = 10_000
    """The number of committed offsets, transactional ids or share partitions."""
    keys_per_group: int = 20
    mix: Mapping[str, float] = field(default_factory=dict)
    """The shares of `KINDS`; `DEFAULT_MIX` if it is empty."""
    commit_versions: tuple[int, ...] = (4,)
    records_per_batch: tuple[int, int] = (1, 40)
    """The lowest and the highest number; all numbers between them are equally frequent."""
    codec: str = "none"
    transactions: float = 0.0
    """The share of batches that are a transaction each, whose marker follows a few batches later."""
    aborted: float = 0.1
    left_open: float = 0.02
    """The shares of the transactions that are aborted, and that have no marker."""
    segment_bytes: int = 100 * 1024 * 1024
    damage: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    start_ms: int = 1_760_000_000_000
    """The time of the first record of every partition."""

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise PlanError(problem)

    def _problems(self) -> list[str]:
        if self.topic not in KINDS:
            return [f"{self.topic} cannot be written: choose one of {', '.join(KINDS)}"]
        low, high = self.records_per_batch
        kinds, mix = KINDS[self.topic], self.shares
        checks = (
            (self.partitions > 0, "a topic has at least one partition"),
            (self.records >= 0, "the number of records cannot be negative"),
            (self.keys > 0 and self.keys_per_group > 0, "there must be at least one key, and one key per group"),
            (self._all(mix, kinds), f"the mix of {self.topic} is made of {', '.join(kinds)}"),
            (all(share >= 0 for share in mix.values()) and sum(mix.values()) > 0, "a mix is made of shares above zero"),
            (
                0 < low <= high <= MOST_RECORDS_PER_BATCH,
                f"a batch has 1 to {MOST_RECORDS_PER_BATCH} records: write two numbers, the lower one first",
            ),
            (self.codec in CODECS, f"{self.codec} is not a codec: choose one of {', '.join(CODECS)}"),
            (
                self.commit_versions and set(self.commit_versions) <= set(COMMIT_VERSIONS),
                f"versions of committed offsets are {', '.join(map(str, COMMIT_VERSIONS))}",
            ),
            (0 <= self.transactions <= 1, "the share of transactions is a number from 0 to 1"),
            (
                self.aborted >= 0 and self.left_open >= 0 and self.aborted + self.left_open <= 1,
                "the shares of aborted and open transactions are numbers from 0 to 1, together too",
            ),
            (
                not self.transactions or self.topic == OFFSETS_TOPIC,
                f"{self.topic} holds no transactional batches: leave transactions out",
            ),
            (self.segment_bytes > 0, "a segment has at least one byte"),
            (self._all(self.damage, DAMAGE), f"damage is one of {', '.join(DAMAGE)}"),
            (all(times >= 0 for times in self.damage.values()), "damage cannot happen less than zero times"),
            (self.start_ms >= 0, "the log starts at 0 or more milliseconds since 1970"),
        )
        return [text for holds, text in checks if not holds]

    @staticmethod
    def _all(given: Mapping[str, object], known: Mapping[str, object]) -> bool:
        return set(given) <= set(known)

    @property
    def shares(self) -> Mapping[str, float]:
        """The mix of kinds of records."""
        return self.mix or DEFAULT_MIX[self.topic]
