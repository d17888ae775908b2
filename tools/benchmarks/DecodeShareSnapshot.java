import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.coordinator.share.generated.ShareSnapshotValue;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF1;

/** The value of a share snapshot, read by Kafka's own class: the same struct as from_share_snapshot_value. */
public final class DecodeShareSnapshot implements UDF1<byte[], Row> {
    private static final long serialVersionUID = 1L;

    @Override
    public Row call(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        short version = buffer.getShort();
        ShareSnapshotValue value = new ShareSnapshotValue(new ByteBufferAccessor(buffer), version);
        Row[] batches = new Row[value.stateBatches().size()];
        for (int index = 0; index < batches.length; index++) {
            ShareSnapshotValue.StateBatch batch = value.stateBatches().get(index);
            batches[index] =
                RowFactory.create(
                    batch.firstOffset(), batch.lastOffset(), batch.deliveryState(), batch.deliveryCount());
        }
        return RowFactory.create(
            value.snapshotEpoch(),
            value.stateEpoch(),
            value.leaderEpoch(),
            value.startOffset(),
            value.deliveryCompleteCount(),
            value.createTimestamp(),
            value.writeTimestamp(),
            batches);
    }
}
