package judge;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Records of groups before 4.1: the type of a key is its version, and type 0 has the classes of type 1. */
final class Records {
    /** A coordinator writes the topics of a consumer group itself, in a record of type 4. */
    static final boolean LACK_TOPICS = false;

    private Records() {}

    static ApiMessage key(CoordinatorRecord record) {
        return record.key().message();
    }

    static short type(CoordinatorRecord record) {
        return record.key().version();
    }

    /** By the converter of the class, since there is none for all keys. */
    static JsonNode keyAsJson(CoordinatorRecord record) {
        ApiMessage key = key(record);
        try {
            Class<?> converter = Class.forName(key.getClass().getName() + "JsonConverter");
            return (JsonNode) converter.getMethod("write", key.getClass(), short.class).invoke(null, key, type(record));
        } catch (ReflectiveOperationException other) {
            throw new IllegalStateException("Kafka writes keys as JSON otherwise", other);
        }
    }

    static CoordinatorRecord of(ApiMessage key, short type, ApiMessageAndVersion value) {
        return new CoordinatorRecord(new ApiMessageAndVersion(key, type), value);
    }

    /** The group, topic and partition of a commit of either type; null if it is none. */
    static OffsetCommitKey committed(CoordinatorRecord record) {
        return key(record) instanceof OffsetCommitKey key ? key : null;
    }

    /** A commit of type 1, or its tombstone, as type 0. */
    static CoordinatorRecord ofType0(CoordinatorRecord record) {
        if (record.value() == null) {
            return of(key(record), (short) 0, null);
        }
        OffsetCommitValue value = (OffsetCommitValue) record.value().message();
        var message = new OffsetCommitValue()
            .setOffset(value.offset()).setMetadata(value.metadata()).setCommitTimestamp(value.commitTimestamp());
        return of(key(record), (short) 0, new ApiMessageAndVersion(message, (short) 0));
    }
}
