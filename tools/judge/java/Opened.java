package judge;

import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.ExtendedWorkerState;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeConnectProtocol;
import org.apache.kafka.connect.util.ConnectorTaskId;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** The decoded bytes of the members of a classic group, as Kafka's consumers and Connect read them. */
final class Opened {
    private static final Set<String> KNOWN = Set.of("consumer", "connect");

    private Opened() {}

    /**
     * The decoded bytes by member, from the answer to DescribeGroups; null if bytes cannot be read, or only some
     * clients can read them.
     */
    static ObjectNode members(JsonNode described) {
        String type = described.get("protocolType").asText();
        String protocol = described.get("protocolData").asText();
        ObjectNode members = Json.object();
        for (JsonNode member : KNOWN.contains(type) ? described.get("members") : Json.array()) {
            byte[] metadata = bytes(member.get("memberMetadata"));
            byte[] assignment = bytes(member.get("memberAssignment"));
            boolean isConsumer = type.equals("consumer");
            ObjectNode opened = members.putObject(member.get("memberId").asText());
            opened.set("subscription", read(() -> isConsumer ? consumer(metadata) : worker(metadata)));
            opened.set("user_data", read(() -> isConsumer ? userData(protocol, metadata) : null));
            opened.set("assignment", read(() -> isConsumer ? assigned(assignment) : allocated(assignment)));
        }
        return members;
    }

    private static byte[] bytes(JsonNode node) {
        return Base64.getDecoder().decode(node.asText());
    }

    private static JsonNode read(Supplier<JsonNode> reader) {
        try {
            return reader.get();
        } catch (RuntimeException unreadable) {
            // SchemaException, BufferUnderflowException, or plain exceptions of generated classes.
            return null;
        }
    }

    private static ConsumerPartitionAssignor.Subscription subscription(byte[] metadata) {
        return ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(metadata));
    }

    private static JsonNode consumer(byte[] metadata) {
        ConsumerPartitionAssignor.Subscription read = subscription(metadata);
        ObjectNode opened = Json.object().put("user_data", text(read.userData()))
            .put("generation", read.generationId().orElse(-1)).put("rack", read.rackId().orElse(null));
        ArrayNode topics = opened.putArray("topics");
        read.topics().forEach(topics::add);
        opened.set("owned", partitions(read.ownedPartitions()));
        return opened;
    }

    private static JsonNode assigned(byte[] assignment) {
        ConsumerPartitionAssignor.Assignment read = ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(assignment));
        ObjectNode opened = Json.object().put("user_data", text(read.userData()));
        opened.set("partitions", partitions(read.partitions()));
        return opened;
    }

    private static String text(ByteBuffer data) {
        return data == null ? null : Base64.getEncoder().encodeToString(Utils.toArray(data));
    }

    private static ArrayNode partitions(Collection<TopicPartition> found) {
        ArrayNode partitions = Json.array();
        found.forEach(each -> partitions.addArray().add(each.topic()).add(each.partition()));
        return partitions;
    }

    /** The user data as the sticky assignors read it; unreadable bytes count as none. */
    private static JsonNode userData(String protocol, byte[] metadata) {
        ConsumerPartitionAssignor.Subscription read = subscription(metadata);
        return switch (protocol) {
            case "sticky" -> new Sticky().read(read);
            case "cooperative-sticky" -> new CooperativeSticky().read(read);
            default -> null;
        };
    }

    private static final class Sticky extends StickyAssignor {
        JsonNode read(ConsumerPartitionAssignor.Subscription subscription) {
            // Partitions in the subscription itself have precedence over those in the user data.
            var plain = new ConsumerPartitionAssignor.Subscription(subscription.topics(), subscription.userData());
            MemberData data = memberData(plain);
            ObjectNode opened = Json.object().put("generation", data.generation.orElse(-1));
            opened.set("partitions", Opened.partitions(data.partitions));
            return opened;
        }
    }

    private static final class CooperativeSticky extends CooperativeStickyAssignor {
        JsonNode read(ConsumerPartitionAssignor.Subscription subscription) {
            var plain = new ConsumerPartitionAssignor.Subscription(
                subscription.topics(), subscription.userData(), List.of(), -1, subscription.rackId());
            return Json.object().put("generation", memberData(plain).generation.orElse(-1));
        }
    }

    private static JsonNode worker(byte[] metadata) {
        ExtendedWorkerState read = IncrementalCooperativeConnectProtocol.deserializeMetadata(ByteBuffer.wrap(metadata));
        ObjectNode opened = Json.object().put("url", read.url()).put("config_offset", read.offset());
        opened.set("allocation", allocation(read.assignment()));
        return opened;
    }

    private static JsonNode allocated(byte[] assignment) {
        return allocation(IncrementalCooperativeConnectProtocol.deserializeAssignment(ByteBuffer.wrap(assignment)));
    }

    private static JsonNode allocation(ExtendedAssignment read) {
        if (read == null || read.leader() == null) {
            // Connect reads a missing assignment as an empty one, which no leader has made.
            return null;
        }
        ObjectNode opened = Json.object().put("error", read.error()).put("leader", read.leader())
            .put("leader_url", read.leaderUrl()).put("config_offset", read.offset()).put("delay", read.delay());
        opened.set("assigned", tasks(read.connectors(), read.tasks()));
        opened.set("revoked", tasks(read.revokedConnectors(), read.revokedTasks()));
        return opened;
    }

    private static ArrayNode tasks(Collection<String> connectors, Collection<ConnectorTaskId> found) {
        ArrayNode tasks = Json.array();
        connectors.forEach(name -> tasks.addArray().add(name).add(-1));
        found.forEach(task -> tasks.addArray().add(task.connector()).add(task.task()));
        return tasks;
    }
}
