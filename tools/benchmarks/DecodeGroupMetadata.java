import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF1;

/** The value of a classic group, read by Kafka's own class: the same struct as from_group_metadata_value. */
public final class DecodeGroupMetadata implements UDF1<byte[], Row> {
    private static final long serialVersionUID = 1L;

    @Override
    public Row call(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        short version = buffer.getShort();
        GroupMetadataValue value = new GroupMetadataValue(new ByteBufferAccessor(buffer), version);
        Row[] members = new Row[value.members().size()];
        for (int index = 0; index < members.length; index++) {
            GroupMetadataValue.MemberMetadata member = value.members().get(index);
            members[index] =
                RowFactory.create(
                    member.memberId(),
                    member.groupInstanceId(),
                    member.clientId(),
                    member.clientHost(),
                    member.rebalanceTimeout(),
                    member.sessionTimeout(),
                    member.subscription(),
                    member.assignment());
        }
        return RowFactory.create(
            value.protocolType(),
            value.generation(),
            value.protocol(),
            value.leader(),
            value.currentStateTimestamp(),
            members);
    }
}
