import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF2;

/**
 * Key and value of a committed offset, read by Kafka's own classes: struct&lt;key, value&gt;, as in the other
 * contenders.
 */
public final class DecodeOffsetCommit implements UDF2<byte[], byte[], Row> {
    private static final long serialVersionUID = 1L;

    @Override
    public Row call(byte[] key, byte[] value) {
        return RowFactory.create(readKey(key), value == null ? null : readValue(value));
    }

    private static Row readKey(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        short type = buffer.getShort();
        if (type != 1) {
            throw new IllegalArgumentException("record type " + type + " is not a committed offset");
        }
        OffsetCommitKey key = new OffsetCommitKey(new ByteBufferAccessor(buffer), (short) 0);
        return RowFactory.create(key.group(), key.topic(), key.partition());
    }

    private static Row readValue(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        short version = buffer.getShort();
        OffsetCommitValue value = new OffsetCommitValue(new ByteBufferAccessor(buffer), version);
        return RowFactory.create(
            value.offset(),
            value.leaderEpoch(),
            value.metadata(),
            value.commitTimestamp(),
            value.expireTimestamp(),
            value.topicId().toString());
    }
}
