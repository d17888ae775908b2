package judge;

import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import com.fasterxml.jackson.databind.JsonNode;

/** Records of groups since 4.1: each key knows its type, and type 0 has classes of its own. */
final class Records {
    /** A coordinator writes the topics of a consumer group as a hash, in place of a record of type 4. */
    static final boolean LACK_TOPICS = true;

    private Records() {}

    static ApiMessage key(CoordinatorRecord record) {
        return record.key();
    }

    static short type(CoordinatorRecord record) {
        return record.key().apiKey();
    }

    static JsonNode keyAsJson(CoordinatorRecord record) {
        return CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key());
    }

    static CoordinatorRecord of(ApiMessage key, short type, ApiMessageAndVersion value) {
        return CoordinatorRecord.record(key, value);
    }

    /** The group, topic and partition of a commit of either type, as a key of type 1; null if it is none. */
    static OffsetCommitKey committed(CoordinatorRecord record) {
        return record.key() instanceof LegacyOffsetCommitKey key
            ? new OffsetCommitKey().setGroup(key.group()).setTopic(key.topic()).setPartition(key.partition())
            : record.key() instanceof OffsetCommitKey key ? key : null;
    }

    /** A commit of type 1, or its tombstone, as type 0. */
    static CoordinatorRecord ofType0(CoordinatorRecord record) {
        OffsetCommitKey key = (OffsetCommitKey) record.key();
        var legacy = new LegacyOffsetCommitKey().setGroup(key.group()).setTopic(key.topic()).setPartition(key.partition());
        if (record.value() == null) {
            return CoordinatorRecord.tombstone(legacy);
        }
        OffsetCommitValue value = (OffsetCommitValue) record.value().message();
        var message = new LegacyOffsetCommitValue()
            .setOffset(value.offset()).setMetadata(value.metadata()).setCommitTimestamp(value.commitTimestamp());
        return CoordinatorRecord.record(legacy, new ApiMessageAndVersion(message, (short) 0));
    }
}
