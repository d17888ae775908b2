import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.ExtendedWorkerState;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeConnectProtocol;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Writes tests/data/vectors/client-protocols.jsonl: what Connect and the sticky assignors put into the records of
 * groups, by Kafka's own classes, and what these read in it and in damaged copies.
 *
 * Each line has message, version (that of the schema if none precedes the bytes), hex and, where Kafka's schema
 * reads the bytes, json: the fields under the names of our specs. Bytes after the message are left alone. A message
 * whose schema tolerates missing fields is read by it, so json may have what the bytes lack.
 *
 * Class path: kafka-clients, connect-runtime and connect-api of one release, and slf4j-api. Argument: a seed.
 */
public final class WriteClientProtocols {
    private static final Map<String, String> NAMES = Map.of(
        "config-offset", "configOffset", "leader-url", "leaderUrl", "previous_assignment", "previousAssignment",
        "topic_assignment", "topicAssignment");

    private final Random random;

    private WriteClientProtocols(long seed) {
        random = new Random(seed);
    }

    public static void main(String[] arguments) throws Exception {
        WriteClientProtocols writer = new WriteClientProtocols(Long.parseLong(arguments[0]));
        Schema sticky0 = schemaOf(StickyAssignor.class, "STICKY_ASSIGNOR_USER_DATA_V0");
        Schema sticky1 = schemaOf(StickyAssignor.class, "STICKY_ASSIGNOR_USER_DATA_V1");
        Schema cooperative = schemaOf(CooperativeStickyAssignor.class, "COOPERATIVE_STICKY_ASSIGNOR_USER_DATA_V0");
        for (int round = 0; round < 12; round++) {
            writer.connect();
            writer.userData("StickyAssignorUserData", 1, sticky1, writer.sticky());
            writer.userData("StickyAssignorUserData", 0, sticky0, writer.withoutGeneration(sticky0, sticky1));
            writer.userData("CooperativeStickyAssignorUserData", 0, cooperative, writer.cooperative());
        }
    }

    private void connect() {
        String url = text();
        long offset = random.nextInt(4) == 0 ? -1 : random.nextLong();
        short error = (short) random.nextInt(2);
        framed("ConnectProtocolSubscription",
            ConnectProtocol.serializeMetadata(new ConnectProtocol.WorkerState(url, offset)));
        framed("ConnectProtocolAssignment", ConnectProtocol.serializeAssignment(
            new ConnectProtocol.Assignment(error, text(), text(), offset, names(), tasks())));
        for (boolean sessioned : new boolean[] {false, true}) {
            short version = (short) (sessioned ? 2 : 1);
            ExtendedAssignment given = new ExtendedAssignment(version, error, text(), text(), offset, names(),
                tasks(), names(), tasks(), random.nextInt(300_000));
            framed("ConnectProtocolAssignment",
                IncrementalCooperativeConnectProtocol.serializeAssignment(given, sessioned));
            ExtendedAssignment held = random.nextInt(3) == 0 ? ExtendedAssignment.empty() : given;
            framed("ConnectProtocolSubscription", IncrementalCooperativeConnectProtocol.serializeMetadata(
                new ExtendedWorkerState(url, offset, held), sessioned));
        }
    }

    private ByteBuffer sticky() {
        StickyAssignor assignor = new StickyAssignor();
        assignor.onAssignment(new Assignment(partitions()), generation());
        return assignor.subscriptionUserData(Set.of());
    }

    private ByteBuffer cooperative() {
        CooperativeStickyAssignor assignor = new CooperativeStickyAssignor();
        assignor.onAssignment(new Assignment(partitions()), generation());
        return assignor.subscriptionUserData(Set.of());
    }

    /** Releases before 2.1 wrote it so. */
    private ByteBuffer withoutGeneration(Schema older, Schema newer) {
        Struct told = newer.read(sticky());
        Struct struct = new Struct(older).set("previous_assignment", told.get("previous_assignment"));
        ByteBuffer bytes = ByteBuffer.allocate(older.sizeOf(struct));
        older.write(bytes, struct);
        return bytes.flip();
    }

    private ConsumerGroupMetadata generation() {
        return new ConsumerGroupMetadata("group", random.nextInt(), "member", Optional.empty());
    }

    private List<TopicPartition> partitions() {
        List<TopicPartition> found = new ArrayList<>();
        for (String topic : names())
            for (int number = 0; number < random.nextInt(4); number++)
                found.add(new TopicPartition(topic, random.nextInt(50)));
        return found;
    }

    private Collection<String> names() {
        Set<String> names = new LinkedHashSet<>();
        for (int count = random.nextInt(4); count > 0; count--)
            names.add(text());
        return names;
    }

    private Collection<ConnectorTaskId> tasks() {
        Collection<ConnectorTaskId> tasks = new LinkedHashSet<>();
        for (String connector : names())
            for (int number = random.nextInt(4); number > 0; number--)
                tasks.add(new ConnectorTaskId(connector, random.nextInt(8)));
        return tasks;
    }

    private String text() {
        int[] points = random.ints(random.nextInt(12), 0, 4)
            .map(kind -> switch (kind) {
                case 0 -> 'a' + random.nextInt(26);
                case 1 -> random.nextInt(128);
                case 2 -> 0x430 + random.nextInt(32);
                default -> 0x1F600 + random.nextInt(64);
            }).toArray();
        return new String(points, 0, points.length);
    }

    // ---- what Kafka reads

    private void framed(String message, ByteBuffer bytes) {
        byte[] written = arrayOf(bytes);
        for (byte[] each : damaged(written)) {
            Map<String, Object> read = null;
            int version = each.length < 2 ? -1 : ByteBuffer.wrap(each).getShort();
            try {
                if (version >= 0)
                    read = fieldsOf(message, ByteBuffer.wrap(each, 2, each.length - 2), version);
            } catch (RuntimeException refused) {
                read = null;
            }
            line(message, version, each, read);
        }
    }

    private static Map<String, Object> fieldsOf(String message, ByteBuffer bytes, int version) {
        Map<String, Object> fields = new HashMap<>();
        if (message.endsWith("Assignment")) {
            collect(fields, version == 0 ? ConnectProtocol.ASSIGNMENT_V0
                : IncrementalCooperativeConnectProtocol.ASSIGNMENT_V1, bytes);
        } else {
            collect(fields, ConnectProtocol.CONFIG_STATE_V0, bytes);
            if (version > 0)
                collect(fields, IncrementalCooperativeConnectProtocol.ALLOCATION_V1, bytes);
        }
        return fields;
    }

    private void userData(String message, int version, Schema schema, ByteBuffer bytes) {
        for (byte[] each : damaged(arrayOf(bytes))) {
            Map<String, Object> read = new HashMap<>();
            try {
                collect(read, schema, ByteBuffer.wrap(each));
            } catch (RuntimeException refused) {
                read = null;
            }
            line(message, version, each, read);
        }
    }

    /** The bytes, and three copies: cut, with a byte more, with a byte changed. */
    private List<byte[]> damaged(byte[] whole) {
        byte[] cut = java.util.Arrays.copyOf(whole, random.nextInt(whole.length + 1));
        byte[] longer = java.util.Arrays.copyOf(whole, whole.length + 1);
        byte[] changed = whole.clone();
        if (changed.length > 2)
            changed[2 + random.nextInt(changed.length - 2)] = (byte) random.nextInt(3);
        return List.of(whole, cut, longer, changed);
    }

    private static void collect(Map<String, Object> fields, Schema schema, ByteBuffer bytes) {
        Struct struct = schema.read(bytes);
        for (BoundField field : schema.fields())
            fields.put(NAMES.getOrDefault(field.def.name, field.def.name), struct.get(field));
    }

    // ---- JSON

    private static void line(String message, int version, byte[] bytes, Map<String, Object> read) {
        System.out.println("{\"message\":\"" + message + "\",\"version\":" + version + ",\"hex\":\""
            + HexFormat.of().formatHex(bytes) + "\",\"json\":" + (read == null ? "null" : json(read)) + "}");
    }

    private static String json(Object value) {
        if (value instanceof Map<?, ?> fields)
            return fields.entrySet().stream().sorted(Map.Entry.comparingByKey((a, b) -> a.toString().compareTo(b.toString())))
                .map(field -> json(field.getKey()) + ":" + json(field.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        if (value instanceof Struct struct) {
            Map<String, Object> fields = new HashMap<>();
            for (BoundField field : struct.schema().fields())
                fields.put(field.def.name, struct.get(field));
            return json(fields);
        }
        if (value instanceof Object[] items)
            return List.of(items).stream().map(WriteClientProtocols::json).collect(Collectors.joining(",", "[", "]"));
        if (value instanceof ByteBuffer bytes)
            return "\"" + java.util.Base64.getEncoder().encodeToString(arrayOf(bytes)) + "\"";
        if (value instanceof String text)
            return text.codePoints().mapToObj(WriteClientProtocols::escaped).collect(Collectors.joining("", "\"", "\""));
        return String.valueOf(value);
    }

    private static String escaped(int point) {
        if (point == '"' || point == '\\')
            return "\\" + (char) point;
        return point < 0x20 ? String.format("\\u%04x", point) : Character.toString(point);
    }

    private static byte[] arrayOf(ByteBuffer bytes) {
        byte[] array = new byte[bytes.remaining()];
        bytes.duplicate().get(array);
        return array;
    }

    private static Schema schemaOf(Class<?> owner, String name) throws ReflectiveOperationException {
        Field field = owner.getDeclaredField(name);
        field.setAccessible(true);
        return (Schema) field.get(null);
    }
}
