package judge;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.TopicPartition;

/** The user data that the assignors of Kafka's consumers put into a subscription, written by these assignors. */
final class UserData {
    private static final int GENERATION_BYTES = 4;

    private UserData() {}

    /** The user data of the assignor `protocol` that last got `owned` in a generation; null for none. */
    static ByteBuffer of(
        Chance chance, String protocol, List<String> topics, List<TopicPartition> owned, ConsumerGroupMetadata group
    ) {
        ConsumerPartitionAssignor assignor = switch (protocol) {
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> null;
        };
        if (assignor == null) {
            return chance.is(20) ? ByteBuffer.wrap(chance.bytes(chance.between(0, 20))) : null;
        }
        if (group.generationId() >= 0) {
            assignor.onAssignment(new ConsumerPartitionAssignor.Assignment(owned), group);
        }
        ByteBuffer written = assignor.subscriptionUserData(Set.copyOf(topics));
        if (written != null && protocol.equals("sticky") && chance.is(30)) {
            // Clients before 2.1 do not write the generation, which is at the end.
            written.limit(written.limit() - GENERATION_BYTES);
        }
        return written;
    }

    /** A group from the view of an assignor. */
    @SuppressWarnings("removal") // nothing else makes one
    static ConsumerGroupMetadata in(String group, int generation, String memberId) {
        return new ConsumerGroupMetadata(group, generation, memberId, Optional.empty());
    }
}
