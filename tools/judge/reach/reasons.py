"""The reasons why the histories do not reach some parts of replay and clean-up.

A reason is about the unreached part of a method in the releases of docs/judge-reach.json. If another method is no
longer reached, add a reason: `python -m tools.judge.reach` names the method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_LOADER: Final = (
    "A record of an unknown type: `CoordinatorLoaderImpl` skips it when it reads the key, so no such record "
    "gets here. The table `checks` reports them as `unknown_record_type`."
)
_SAME_SETTING: Final = (
    "A group above the maximum size, and an unknown kind of group: the loading coordinator has the same "
    "settings as the one that wrote the log, and the rebalance that would follow does not write records here."
)
_NULL: Final = "A guard against null, which callers never pass."
_EMPTY_CALL: Final = "A guard against a call without topics, which does not occur."
_EMPTY_GROUP: Final = "Tombstones of members: only empty groups are deleted, so Kafka writes no such tombstones."
_WITH_TWO: Final = (
    "A member is replaced in the same write that converts the group, which also contains target assignments, "
    "members and expressions of other members."
)
_DEBUG: Final = "An entry that does not exist is removed: Kafka only logs this."
_WRONG_ORDER: Final = (
    "The coordinator stops at tombstones in the wrong order. Only a log that has lost records contains such "
    "tombstones, in random orders. `tests/tables/planted_conflicts.py` has such a log for each order, which "
    "Kafka's classes refuse."
)
_OTHER_KIND: Final = (
    "The coordinator stops at a record of one kind of group in a group of another kind. "
    "`tests/tables/planted_conflicts.py` has such logs, which Kafka's classes refuse."
)
_CLASSIC_CONFLICT: Final = (
    "A classic group whose members contradict each other: coordinators do not write such records. "
    "`tests/tables/planted_conflicts.py` has two members with the same instance id, which Kafka's classes "
    "refuse."
)
_IN_STEP: Final = (
    "Pending offsets and their transactions are always changed together, so there is never one without the " "other."
)
_NEVER_SHORT: Final = "Callers check the condition first, so the other branch is never taken."

_REASONS: Final[Mapping[str, str]] = {
    "GroupCoordinatorShard.replay": _LOADER,
    "GroupCoordinatorShard.listStreamsGroupsNeedingTopologyCleanup": (
        "A group is deleted while the list is built, or reading it fails: here, there is only one thread."
    ),
    "GroupMetadataManager.getOrMaybeCreatePersistedConsumerGroup": _OTHER_KIND,
    "GroupMetadataManager.getOrMaybeCreatePersistedStreamsGroup": _OTHER_KIND,
    "GroupMetadataManager.getOrMaybeCreatePersistedShareGroup": _OTHER_KIND,
    "GroupMetadataManager.replay(GroupMetadataKey)": (
        "A protocol type that is null: no version allows null, so Kafka cannot write one."
    ),
    "GroupMetadataManager.replay(ConsumerGroupMemberMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(ConsumerGroupMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(ConsumerGroupTargetAssignmentMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(ShareGroupMemberMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(ShareGroupMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(ShareGroupTargetAssignmentMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(StreamsGroupMemberMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(StreamsGroupMetadataKey)": (
        "Tombstones in the wrong order; and a null list of configurations of the last assignment: if its tag "
        "is missing, it is read as an empty list, and no release writes null."
    ),
    "GroupMetadataManager.replay(StreamsGroupTargetAssignmentMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(StreamsGroupTopologyKey)": _WRONG_ORDER,
    "GroupMetadataManager.lambda$onLoaded$0": _SAME_SETTING,
    "GroupMetadataManager.maybeCleanupShareGroupState": _EMPTY_CALL,
    "GroupMetadataManager.lambda$maybeCleanupShareGroupState$0": (
        "A deleted topic for which a share group has only a deletion that never ended: this is rare."
    ),
    "GroupMetadataManager.maybeDeleteGroup": _NEVER_SHORT,
    "OffsetMetadataManager.lambda$replay$1": _IN_STEP,
    "OffsetMetadataManager$OpenTransactions.remove": _IN_STEP,
    "OffsetMetadataManager.lambda$onTopicsDeleted$2": (
        "An offset with the id of an earlier topic of the same name, whose own deletion the coordinator missed."
    ),
    "ClassicGroup.isSimpleGroup": (
        "A group with members, or joining members, but without a protocol type: the first member sets the type."
    ),
    "ClassicGroup.add": _CLASSIC_CONFLICT,
    "ClassicGroup.lambda$add$0": _CLASSIC_CONFLICT,
    "ClassicGroup.supportsProtocols": "Members without a common protocol: a broker refuses the member that joins.",
    "ClassicGroup.computeSubscribedTopics": "Members without a chosen protocol: this is called only after the choice.",
    "ConsumerGroup.updateMember": _NULL,
    "ConsumerGroup.removeStaticMember": _NULL,
    "ConsumerGroup.updateResolvedRegularExpression": _NULL,
    "ConsumerGroup.maybeUpdateSubscribedRegularExpression": (
        "A missing expression is either null or an empty string; one of the two never occurs."
    ),
    "ConsumerGroup.createGroupTombstoneRecordsWithReplacedMember": _WITH_TWO,
    "ConsumerGroup.lambda$createGroupTombstoneRecordsWithReplacedMember$0": _WITH_TWO,
    "ConsumerGroup.lambda$createGroupTombstoneRecordsWithReplacedMember$1": _WITH_TWO,
    "ConsumerGroup.lambda$createGroupTombstoneRecordsWithReplacedMember$2": _WITH_TWO,
    "ConsumerGroup.lambda$createGroupTombstoneRecordsWithReplacedMember$3": _WITH_TWO,
    "ConsumerGroup.lambda$addPartitionEpochs$1": (
        "The coordinator stops if a member gets a partition that another has at the same epoch or a later one."
    ),
    "ConsumerGroup.lambda$removePartitionEpochs$1": _DEBUG,
    "ConsumerGroup.lambda$removePartitionEpochs$2": _DEBUG,
    "ShareGroup.updateMember": _NULL,
    "ShareGroup.offsetExpirationCondition": (
        "A share group with offsets, at which the clean-up of all groups fails: this can happen only if a "
        "cleaner leaves a record of type 0 after its tombstone of type 1."
    ),
    "ShareGroup.lambda$createGroupTombstoneRecords$0": _EMPTY_GROUP,
    "ShareGroup.lambda$createGroupTombstoneRecords$1": _EMPTY_GROUP,
    "ShareGroup.lambda$createGroupTombstoneRecords$2": _EMPTY_GROUP,
    "StreamsGroup.updateMember": _NULL,
    "StreamsGroup.updateStaticMember": (
        "Before 4.4 a broker refuses streams members with a group.instance.id; since 4.4 this is a guard against null."
    ),
    "StreamsGroup.removeStaticMember": (
        "Before 4.4 a broker refuses streams members with a group.instance.id; since 4.4 this is a guard against null."
    ),
    "StreamsGroup.shouldExpire": (
        "If a plugin stores a description of the topology, the group does not expire before the description is deleted "
        "(KIP-1331). Kafka has no such plugin."
    ),
    "StreamsGroup.isSubscribedToTopic": (
        "A group in state Dead, which a streams group never reaches; and a group with members but without a "
        "topology, which a cleaner may leave, but rarely with offsets that could expire."
    ),
    "StreamsGroup.addTaskProcessId": _NULL,
    "StreamsGroup.clearShutdownRequestMemberId": "A request that shuts down an application is kept only in memory.",
    "StreamsGroup.setLastAssignmentConfigs": _NULL,
    "StreamsGroup.lambda$addTaskProcessIdFromActiveTasksWithEpochs$1": _DEBUG,
    "StreamsGroup.lambda$removeTaskProcessIds$1": _DEBUG,
    "StreamsGroup.lambda$removeTaskProcessIds$2": _DEBUG,
    "StreamsGroup.lambda$removeTaskProcessIdsFromSet$1": _DEBUG,
    "StreamsGroup.lambda$removeTaskProcessIdsFromSet$2": _DEBUG,
    "StreamsGroup.lambda$createGroupTombstoneRecords$0": _EMPTY_GROUP,
    "StreamsGroup.lambda$createGroupTombstoneRecords$1": _EMPTY_GROUP,
    "StreamsGroup.lambda$createGroupTombstoneRecords$2": _EMPTY_GROUP,
    "ShareCoordinatorShard.replay": _LOADER,
    "ShareCoordinatorShard.replayEndTransactionMarker": "Share state is never written in a transaction.",
    "ShareCoordinatorShard.maybeCleanupShareState": _EMPTY_CALL,
    "ShareCoordinatorShard.merge": (
        "An update without a leader epoch: if a request has none, the coordinator writes the last known epoch."
    ),
    "PersisterStateBatchCombiner.initializeCombinedList": _NULL,
    "PersisterStateBatchCombiner.getMergeCandidatePair": _NULL,
    "PersisterStateBatchCombiner.<init>": _NULL,
    "PersisterStateBatchCombiner.sweepMerge": (
        "One of four ways through a condition cannot occur, because starts and ends are sorted."
    ),
    "ShareCoordinatorOffsetsManager.findRedundantOffset": (
        "The method is called only after an offset was added, so there is one."
    ),
}


def reason(name: str, method: str) -> str | None:
    """Why a part of a method is not reached; None if no reason is written. `method` is its name as in `measured`."""
    return _REASONS.get(f"{name}.{method}")
