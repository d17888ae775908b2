"""The states that records keep as numbers, by Kafka's names (4.3)."""

from __future__ import annotations

from kafka_records_runtime.open_enum import OpenIntEnum


class MemberState(OpenIntEnum):
    """Where a member of a consumer or share group is on the way to its target assignment.

    `state` of ConsumerGroupCurrentMemberAssignmentValue (KIP-848) and ShareGroupCurrentMemberAssignmentValue
    (KIP-932); `org.apache.kafka.coordinator.group.modern.MemberState`. Members of share groups are always STABLE,
    as they never wait for each other.
    """

    STABLE = 0
    """It has what the newest target assignment it was told of gives it."""
    UNREVOKED_PARTITIONS = 1
    """It has yet to confirm that it gave up partitions."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others have yet to give up."""
    UNKNOWN = 127
    """Kafka reads every other number as this."""


class StreamsMemberState(OpenIntEnum):
    """Where a member of a streams group is on the way to its target assignment.

    `state` of StreamsGroupCurrentMemberAssignmentValue (KIP-1071);
    `org.apache.kafka.coordinator.group.streams.MemberState`. The numbers are not those of `MemberState`.
    """

    STABLE = 1
    """It has what the newest target assignment it was told of gives it."""
    UNREVOKED_TASKS = 2
    """It has yet to confirm that it gave up tasks."""
    UNRELEASED_TASKS = 3
    """It waits for tasks that others have yet to give up."""
    UNKNOWN = 127
    """Kafka reads every other number as this."""


class DeliveryState(OpenIntEnum):
    """What has become of records that a share group reads (KIP-932).

    `deliveryState` of the batches in ShareSnapshotValue, ShareUpdateValue, ReadShareGroupStateResponse and
    WriteShareGroupStateRequest; `org.apache.kafka.server.share.fetch.RecordState`. A broker stores AVAILABLE,
    ACKNOWLEDGED and ARCHIVED; the two others exist in its memory.
    """

    AVAILABLE = 0
    """To be delivered, for the first time or again."""
    ACQUIRED = 1
    """With a member, which has not said yet what became of it."""
    ACKNOWLEDGED = 2
    """Done with: a member has processed it."""
    ARCHIVING = 3
    """On the way to ARCHIVED."""
    ARCHIVED = 4
    """Done with: rejected, delivered too often, or gone from the log."""


class TransactionState(OpenIntEnum):
    """Where a transactional id's current transaction stands (KIP-98).

    `transactionStatus` of TransactionLogValue; `org.apache.kafka.coordinator.transaction.TransactionState`.
    """

    EMPTY = 0
    """No transaction yet."""
    ONGOING = 1
    """Open: partitions have been added."""
    PREPARE_COMMIT = 2
    """Decided to commit; the markers are being written."""
    PREPARE_ABORT = 3
    """Decided to abort; the markers are being written."""
    COMPLETE_COMMIT = 4
    """Committed in all partitions."""
    COMPLETE_ABORT = 5
    """Aborted in all partitions."""
    DEAD = 6
    """Expired; the transactional id is being removed."""
    PREPARE_EPOCH_FENCE = 7
    """About to raise the producer epoch, to shut out an older producer. Brokers do not store it."""

    @property
    def label(self) -> str:
        """The name as Kafka's tools print it, such as PrepareCommit; of an unknown number, the number."""
        return "".join(word.capitalize() for word in self.name.split("_")) if self.is_known else str(self.value)
