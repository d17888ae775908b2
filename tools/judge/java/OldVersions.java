package judge;

import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;

import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataValue;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Makes of offset commits, classic groups and consumer groups what older brokers wrote, of all of them or of a part. */
final class OldVersions implements Function<CoordinatorRecord, List<CoordinatorRecord>> {
    private static final long NONE = -1;

    private final Chance chance;
    private final Supplier<Topics> topics;
    private final int share;
    private final short oldestCommit;
    private final short oldestGroup;
    private final boolean hasKeysOfType0;
    private final boolean hasTopicsOfGroups;

    /** `topics` gives those that there are. */
    OldVersions(Chance chance, Supplier<Topics> topics) {
        this.chance = chance;
        this.topics = topics;
        share = chance.of(30, 100);
        oldestCommit = (short) chance.between(0, 3);
        oldestGroup = (short) chance.between(0, 2);
        hasKeysOfType0 = chance.is(20);
        hasTopicsOfGroups = chance.is(50);
    }

    @Override
    public List<CoordinatorRecord> apply(CoordinatorRecord record) {
        if (record.value() != null && record.key() instanceof ConsumerGroupMetadataKey key && hasTopicsOfGroups) {
            // Each time, for it tells what the topics are now.
            return List.of(topicsOf(key.groupId()), record);
        }
        if (!chance.is(share)) {
            return List.of(record);
        }
        if (record.value() == null) {
            boolean isOfType0 = hasKeysOfType0 && record.key() instanceof OffsetCommitKey && chance.is(30);
            return List.of(isOfType0 ? CoordinatorRecord.tombstone(legacy((OffsetCommitKey) record.key())) : record);
        }
        return List.of(older(record));
    }

    private CoordinatorRecord older(CoordinatorRecord record) {
        if (record.value().message() instanceof OffsetCommitValue value) {
            OffsetCommitKey key = (OffsetCommitKey) record.key();
            return hasKeysOfType0 && chance.is(30) ? ofType0(key, value) : older(key, value);
        }
        if (record.value().message() instanceof GroupMetadataValue value) {
            short version = (short) chance.between(oldestGroup, 3);
            return CoordinatorRecord.record(record.key(), new ApiMessageAndVersion(loaded(value, version), version));
        }
        return record;
    }

    /** What the topics of a consumer group were, in a record of its own before 4.1; since then a hash of them does. */
    private CoordinatorRecord topicsOf(String group) {
        var told = topics.get().all().stream()
            .map(topic -> new ConsumerGroupPartitionMetadataValue.TopicMetadata()
                .setTopicId(topic.id()).setTopicName(topic.name()).setNumPartitions(topic.partitionCount())).toList();
        return CoordinatorRecord.record(
            new ConsumerGroupPartitionMetadataKey().setGroupId(group),
            new ApiMessageAndVersion(new ConsumerGroupPartitionMetadataValue().setTopics(told), (short) 0));
    }

    private static LegacyOffsetCommitKey legacy(OffsetCommitKey key) {
        return new LegacyOffsetCommitKey().setGroup(key.group()).setTopic(key.topic()).setPartition(key.partition());
    }

    private static CoordinatorRecord ofType0(OffsetCommitKey key, OffsetCommitValue value) {
        var message = new LegacyOffsetCommitValue()
            .setOffset(value.offset()).setMetadata(value.metadata()).setCommitTimestamp(value.commitTimestamp());
        return CoordinatorRecord.record(legacy(key), new ApiMessageAndVersion(message, (short) 0));
    }

    private CoordinatorRecord older(OffsetCommitKey key, OffsetCommitValue value) {
        // Only version 1 has a time at which the offset expires.
        short version = (short) (value.expireTimestamp() != NONE ? 1 : chance.between(oldestCommit, 3));
        return CoordinatorRecord.record(key, new ApiMessageAndVersion(loaded(value, version), version));
    }

    private static OffsetCommitValue loaded(OffsetCommitValue value, short version) {
        var accessor = MessageUtil.toByteBufferAccessor(value, version);
        return new OffsetCommitValue(accessor, version);
    }

    private static GroupMetadataValue loaded(GroupMetadataValue value, short version) {
        var accessor = MessageUtil.toByteBufferAccessor(value, version);
        return new GroupMetadataValue(accessor, version);
    }
}
