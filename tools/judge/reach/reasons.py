"""Why the histories do not reach some of replay and clean-up.

A reason is about what is left of a method in the releases of docs/judge-reach.json. Another method, or another of
these that is reached no longer, has to get one: `python -m tools.judge.reach` names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_LOADER: Final = (
    "A record of an unknown type: `CoordinatorLoaderImpl` passes over it when its key is read, so none comes here; "
    "the table `checks` counts them as `unknown_record_type`."
)
_SAME_SETTING: Final = (
    "Groups larger than the largest size, and a kind of group that is none: whoever loads has the settings of whoever "
    "wrote, as in a cluster whose settings nobody changes, and the rebalance that follows writes nothing here."
)
_NULL: Final = "A guard against null, which no caller gives."
_EMPTY_CALL: Final = "A guard against a call about no topic, which no service makes."
_EMPTY_GROUP: Final = "Tombstones of members: only empty groups are deleted, so that there is none."
_WITH_TWO: Final = (
    "A member that is replaced in the write that converts the group: target assignments, members and expressions of "
    "the others at the same time."
)
_DEBUG: Final = "What is no longer there is removed: it is logged, and nothing follows from it."
_WRONG_ORDER: Final = (
    "The coordinator stops at tombstones in the wrong order. Only a log that has lost records has them; which orders "
    "it comes to is chance. `tests/tables/planted_conflicts.py` has a log of each, which Kafka's classes refuse."
)
_OTHER_KIND: Final = (
    "The coordinator stops at a record of a kind of group in a group of another kind. "
    "`tests/tables/planted_conflicts.py` has logs of it, which Kafka's classes refuse."
)
_CLASSIC_CONFLICT: Final = (
    "A classic group whose members contradict each other; coordinators write no such record. "
    "`tests/tables/planted_conflicts.py` has two members of one instance, which Kafka's classes refuse."
)
_IN_STEP: Final = (
    "Pending offsets and the transactions that have them are kept in step, so that neither is there alone."
)
_NEVER_SHORT: Final = "Callers ask after they have looked, so that the other branch of the condition is taken nowhere."

_REASONS: Final[Mapping[str, str]] = {
    "GroupCoordinatorShard.replay": _LOADER,
    "GroupCoordinatorShard.listStreamsGroupsNeedingTopologyCleanup": (
        "A group that is deleted while the list is made, and an error of one: there is one thread here."
    ),
    "GroupMetadataManager.getOrMaybeCreatePersistedConsumerGroup": _OTHER_KIND,
    "GroupMetadataManager.getOrMaybeCreatePersistedStreamsGroup": _OTHER_KIND,
    "GroupMetadataManager.getOrMaybeCreatePersistedShareGroup": _OTHER_KIND,
    "GroupMetadataManager.replay(GroupMetadataKey)": (
        "A protocol type that is null: it is not nullable in any version, so that no bytes give it."
    ),
    "GroupMetadataManager.replay(ConsumerGroupMemberMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(ConsumerGroupMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(ConsumerGroupTargetAssignmentMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(ShareGroupMemberMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(ShareGroupMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(ShareGroupTargetAssignmentMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(StreamsGroupMemberMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(StreamsGroupMetadataKey)": (
        "A configuration of the last assignment that is null: without its tag it reads as an empty list, and no "
        f"release writes null. {_WRONG_ORDER}"
    ),
    "GroupMetadataManager.replay(StreamsGroupTargetAssignmentMetadataKey)": _WRONG_ORDER,
    "GroupMetadataManager.replay(StreamsGroupTopologyKey)": _WRONG_ORDER,
    "GroupMetadataManager.lambda$onLoaded$0": _SAME_SETTING,
    "GroupMetadataManager.maybeCleanupShareGroupState": _EMPTY_CALL,
    "GroupMetadataManager.lambda$maybeCleanupShareGroupState$0": (
        "A deleted topic of which a share group knows nothing but a deletion that never ended: rare."
    ),
    "GroupMetadataManager.maybeDeleteGroup": _NEVER_SHORT,
    "OffsetMetadataManager.lambda$replay$1": _IN_STEP,
    "OffsetMetadataManager$OpenTransactions.remove": _IN_STEP,
    "OffsetMetadataManager.lambda$onTopicsDeleted$2": (
        "An offset with the id of an earlier topic of the same name, whose own deletion the coordinator missed."
    ),
    "ClassicGroup.isSimpleGroup": (
        "A group without a protocol type and with members, or with members that are joining: the first of them gives "
        "it the type."
    ),
    "ClassicGroup.add": _CLASSIC_CONFLICT,
    "ClassicGroup.lambda$add$0": _CLASSIC_CONFLICT,
    "ClassicGroup.supportsProtocols": "Members that agree on no protocol: a broker refuses the one that joins.",
    "ClassicGroup.computeSubscribedTopics": "Members without a chosen protocol: nobody asks before there is one.",
    "ConsumerGroup.updateMember": _NULL,
    "ConsumerGroup.removeStaticMember": _NULL,
    "ConsumerGroup.updateResolvedRegularExpression": _NULL,
    "ConsumerGroup.maybeUpdateSubscribedRegularExpression": (
        "A member has no expression in one of two forms, null and empty text; the other form comes up nowhere."
    ),
    "ConsumerGroup.createGroupTombstoneRecordsWithReplacedMember": _WITH_TWO,
    "ConsumerGroup.lambda$createGroupTombstoneRecordsWithReplacedMember$0": _WITH_TWO,
    "ConsumerGroup.lambda$createGroupTombstoneRecordsWithReplacedMember$1": _WITH_TWO,
    "ConsumerGroup.lambda$createGroupTombstoneRecordsWithReplacedMember$2": _WITH_TWO,
    "ConsumerGroup.lambda$createGroupTombstoneRecordsWithReplacedMember$3": _WITH_TWO,
    "ConsumerGroup.lambda$addPartitionEpochs$1": (
        "The coordinator stops where a member gets a partition that another has at the same epoch or a later one."
    ),
    "ConsumerGroup.lambda$removePartitionEpochs$1": _DEBUG,
    "ConsumerGroup.lambda$removePartitionEpochs$2": _DEBUG,
    "ShareGroup.updateMember": _NULL,
    "ShareGroup.offsetExpirationCondition": (
        "A share group with offsets, at which the clean-up of all groups fails: only a cleaner that leaves one of "
        "record type 0 after its tombstone of type 1 brings it about."
    ),
    "ShareGroup.lambda$createGroupTombstoneRecords$0": _EMPTY_GROUP,
    "ShareGroup.lambda$createGroupTombstoneRecords$1": _EMPTY_GROUP,
    "ShareGroup.lambda$createGroupTombstoneRecords$2": _EMPTY_GROUP,
    "StreamsGroup.updateMember": _NULL,
    "StreamsGroup.updateStaticMember": (
        "Before 4.4 a broker refuses streams members with a group.instance.id; since then, a guard against null."
    ),
    "StreamsGroup.removeStaticMember": (
        "Before 4.4 a broker refuses streams members with a group.instance.id; since then, a guard against null."
    ),
    "StreamsGroup.shouldExpire": (
        "With a plugin that stores descriptions of topologies, and one stored, a group does not expire before the "
        "description is deleted (KIP-1331). Kafka brings no plugin, so these brokers have none."
    ),
    "StreamsGroup.isSubscribedToTopic": (
        "A group that is Dead, which no streams group becomes; and one with members and no topology, which a cleaner "
        "may leave: rarely with offsets that could expire."
    ),
    "StreamsGroup.addTaskProcessId": _NULL,
    "StreamsGroup.clearShutdownRequestMemberId": "A request that stops an application is kept in memory, in no record.",
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
    "ShareCoordinatorShard.replayEndTransactionMarker": "Nobody writes share state within a transaction.",
    "ShareCoordinatorShard.maybeCleanupShareState": _EMPTY_CALL,
    "ShareCoordinatorShard.merge": (
        "An update without a leader epoch: a coordinator writes the one that it knows where a request has none."
    ),
    "PersisterStateBatchCombiner.initializeCombinedList": _NULL,
    "PersisterStateBatchCombiner.getMergeCandidatePair": _NULL,
    "PersisterStateBatchCombiner.<init>": _NULL,
    "PersisterStateBatchCombiner.sweepMerge": (
        "Of the four ways through one condition, in a loop over starts and ends in their order, one cannot come up."
    ),
    "ShareCoordinatorOffsetsManager.findRedundantOffset": "It is called after an offset was added, so there is one.",
}


def reason(name: str, method: str) -> str | None:
    """Why something of a method, as `measured` calls it, of a class is not reached; None where nobody has said."""
    return _REASONS.get(f"{name}.{method}")
