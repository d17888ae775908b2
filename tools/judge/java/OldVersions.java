package judge;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;

import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataValue;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Converts offset commits, classic groups and consumer groups into records of older brokers, all or some of them. */
final class OldVersions implements Function<CoordinatorRecord, List<CoordinatorRecord>> {
    private static final long NONE = -1;
    private static final short TOPICS = 4;

    private final Chance chance;
    private final Supplier<Topics> topics;
    private final int share;
    private final short oldestCommit;
    private final short oldestGroup;
    private final boolean hasKeysOfType0;
    private final boolean hasTopicsOfGroups;

    /** `topics` returns the existing topics. */
    OldVersions(Chance chance, Supplier<Topics> topics) {
        this.chance = chance;
        this.topics = topics;
        share = chance.of(30, 100);
        oldestCommit = (short) chance.between(0, 3);
        oldestGroup = (short) chance.between(0, 2);
        hasKeysOfType0 = chance.is(20);
        hasTopicsOfGroups = chance.is(50) && Records.LACK_TOPICS;
    }

    @Override
    public List<CoordinatorRecord> apply(CoordinatorRecord record) {
        if (record.value() != null && Records.key(record) instanceof ConsumerGroupMetadataKey key && hasTopicsOfGroups) {
            // Written each time, because it has the present topics.
            return List.of(topicsOf(key.groupId()), record);
        }
        if (!chance.is(share)) {
            return List.of(record);
        }
        if (record.value() == null) {
            boolean isOfType0 = hasKeysOfType0 && Records.key(record) instanceof OffsetCommitKey && chance.is(30);
            return List.of(isOfType0 ? Records.ofType0(record) : record);
        }
        return List.of(older(record));
    }

    private CoordinatorRecord older(CoordinatorRecord record) {
        if (record.value().message() instanceof OffsetCommitValue value) {
            return hasKeysOfType0 && chance.is(30) ? Records.ofType0(record) : older(record, value);
        }
        if (record.value().message() instanceof GroupMetadataValue value) {
            short version = (short) chance.between(oldestGroup, 3);
            return with(record, loaded(value, version), version);
        }
        return record;
    }

    /** The topics of a consumer group, which had a separate record before 4.1; since then, a hash replaces it. */
    private CoordinatorRecord topicsOf(String group) {
        var told = topics.get().all().stream()
            .map(topic -> new ConsumerGroupPartitionMetadataValue.TopicMetadata()
                .setTopicId(topic.id()).setTopicName(topic.name()).setNumPartitions(topic.partitionCount())).toList();
        return Records.of(
            new ConsumerGroupPartitionMetadataKey().setGroupId(group), TOPICS,
            new ApiMessageAndVersion(new ConsumerGroupPartitionMetadataValue().setTopics(told), (short) 0));
    }

    private CoordinatorRecord older(CoordinatorRecord record, OffsetCommitValue value) {
        // Only version 1 has an expiry time of the offset.
        short version = (short) (value.expireTimestamp() != NONE ? 1 : chance.between(oldestCommit, 3));
        return with(record, loaded(value, version), version);
    }

    private static CoordinatorRecord with(CoordinatorRecord record, ApiMessage value, short version) {
        return Records.of(Records.key(record), Records.type(record), new ApiMessageAndVersion(value, version));
    }

    private static OffsetCommitValue loaded(OffsetCommitValue value, short version) {
        return new OffsetCommitValue(written(value, version), version);
    }

    private static GroupMetadataValue loaded(GroupMetadataValue value, short version) {
        return new GroupMetadataValue(written(value, version), version);
    }

    private static ByteBufferAccessor written(ApiMessage value, short version) {
        ByteBuffer bytes = MessageUtil.toVersionPrefixedByteBuffer(version, value);
        bytes.getShort();
        return new ByteBufferAccessor(bytes);
    }
}
