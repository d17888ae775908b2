package judge;

import java.util.function.UnaryOperator;

import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Makes of offset commits and classic groups what older brokers wrote, of all of them or of a part. */
final class OldVersions implements UnaryOperator<CoordinatorRecord> {
    private static final long NONE = -1;

    private final Chance chance;
    private final int share;
    private final short oldestCommit;
    private final short oldestGroup;
    private final boolean hasKeysOfType0;

    OldVersions(Chance chance) {
        this.chance = chance;
        share = chance.of(30, 100);
        oldestCommit = (short) chance.between(0, 3);
        oldestGroup = (short) chance.between(0, 2);
        hasKeysOfType0 = chance.is(20);
    }

    @Override
    public CoordinatorRecord apply(CoordinatorRecord record) {
        if (record.value() == null || !chance.is(share)) {
            return record;
        }
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

    private static CoordinatorRecord ofType0(OffsetCommitKey key, OffsetCommitValue value) {
        var legacy = new LegacyOffsetCommitKey()
            .setGroup(key.group()).setTopic(key.topic()).setPartition(key.partition());
        var message = new LegacyOffsetCommitValue()
            .setOffset(value.offset()).setMetadata(value.metadata()).setCommitTimestamp(value.commitTimestamp());
        return CoordinatorRecord.record(legacy, new ApiMessageAndVersion(message, (short) 0));
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
