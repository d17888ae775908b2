import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/**
 * Lets the message classes of a release write and read. Each line of input is a JSON object with `message` and
 * `version`, and either `json`, with `tags` if there are unknown ones, to be written, or `hex`, to be read. Each line
 * of output answers one of input.
 *
 * Of what was written: `module`, `hex` and `json`, as Kafka prints it, or `error` and `detail` of JSON that it does not
 * take. Of what was read: `ok`; then `json`, `left` (bytes
 * unread), `tags`, `records` and, where writing gives other bytes, `reencode_hex` or `reencode_error`; or else `error`
 * and `detail`. A message that the release does not have gives `unknown`.
 *
 * Class path: the modules of one release that hold messages, with what they need. Argument: packages to look in first.
 */
public final class JudgeMessages {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final List<String> PACKAGES = List.of("org.apache.kafka.common.message",
        "org.apache.kafka.coordinator.group.generated", "org.apache.kafka.coordinator.share.generated",
        "org.apache.kafka.coordinator.transaction.generated", "org.apache.kafka.server.log.remote.metadata.storage.generated",
        "org.apache.kafka.common.metadata", "org.apache.kafka.streams.internals.generated");

    /** The types of `records` fields, by simple name: 4.3 moved them to another package. */
    private static final List<String> RECORDS = List.of("BaseRecords", "MemoryRecords");

    private JudgeMessages() {
    }

    public static void main(String[] arguments) throws Exception {
        List<String> packages = new ArrayList<>(List.of(arguments));
        packages.addAll(PACKAGES);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.append(JSON.writeValueAsString(answer(JSON.readTree(line), packages))).append('\n');
        }
        System.out.write(answers.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private static ObjectNode answer(JsonNode asked, List<String> packages) throws Exception {
        Class<?> type = find(asked.get("message").asText(), packages);
        ObjectNode answer = JSON.createObjectNode();
        short version = (short) asked.get("version").asInt();
        if (type == null) {
            return answer.put("unknown", true);
        }
        if (asked.has("json")) {
            try {
                written(type, version, asked, answer);
            } catch (InvocationTargetException refusal) {
                answer.put("error", refusal.getCause().getClass().getName()).put("detail", refusal.getCause().getMessage());
            }
        } else {
            read(type, version, HEX.parseHex(asked.get("hex").asText()), answer);
        }
        return answer;
    }

    /** Requests and responses have classes that end with Data. */
    private static Class<?> find(String message, List<String> packages) {
        for (String place : packages) {
            for (String suffix : List.of("Data", "")) {
                try {
                    return Class.forName(place + "." + message + suffix);
                } catch (ClassNotFoundException elsewhere) {
                    continue;
                }
            }
        }
        return null;
    }

    private static Class<?> converter(Class<?> type) throws ClassNotFoundException {
        return Class.forName(type.getName() + "JsonConverter");
    }

    private static JsonNode json(Message message, short version) throws Exception {
        Method write = converter(message.getClass()).getMethod("write", message.getClass(), short.class);
        return (JsonNode) write.invoke(null, message, version);
    }

    // ---- writing

    private static void written(Class<?> type, short version, JsonNode asked, ObjectNode answer) throws Exception {
        Message message = (Message) converter(type).getMethod("read", JsonNode.class, short.class)
            .invoke(null, asked.get("json"), version);
        for (JsonNode tag : asked.path("tags")) {
            byte[] payload = HEX.parseHex(tag.get("hex").asText());
            inside(message, tag.get("path")).unknownTaggedFields().add(new RawTaggedField(tag.get("tag").asInt(), payload));
        }
        byte[] bytes = bytes(message, version);
        Message again = instance(type);
        again.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), version);
        if (!again.equals(message)) {
            throw new IllegalStateException(type + " reads something else than it wrote: " + asked);
        }
        String jar = new File(type.getProtectionDomain().getCodeSource().getLocation().getPath()).getName();
        answer.put("module", jar.replaceFirst("-[0-9].*", "")).put("hex", HEX.formatHex(bytes));
        answer.set("json", json(message, version));
    }

    private static Message inside(Message message, JsonNode path) throws Exception {
        Object found = message;
        for (JsonNode step : path) {
            if (step.isInt()) {
                found = new ArrayList<>((Collection<?>) found).get(step.asInt());
            } else {
                found = found.getClass().getMethod(step.asText()).invoke(found);
            }
        }
        return (Message) found;
    }

    private static byte[] bytes(Message message, short version) {
        ObjectSerializationCache sizes = new ObjectSerializationCache();
        byte[] bytes = new byte[message.size(sizes, version)];
        message.write(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), sizes, version);
        return bytes;
    }

    private static Message instance(Class<?> type) throws Exception {
        Constructor<?> empty = type.getConstructor();
        return (Message) empty.newInstance();
    }

    // ---- reading

    private static void read(Class<?> type, short version, byte[] bytes, ObjectNode answer) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        Message message = instance(type);
        try {
            message.read(new ByteBufferAccessor(buffer), version);
        } catch (RuntimeException | OutOfMemoryError refusal) {
            answer.put("ok", false).put("error", refusal.getClass().getName()).put("detail", refusal.getMessage());
            return;
        }
        answer.put("ok", true);
        try {
            answer.set("json", json(message, version));
        } catch (InvocationTargetException refusal) {
            answer.put("json_error", refusal.getCause().getClass().getName());
        } catch (ClassNotFoundException converter) {
            // The records of coordinators had none while their classes were in the jar of the broker.
            answer.put("json_error", converter.getClass().getName());
        }
        answer.put("left", buffer.remaining());
        ArrayNode tags = JSON.createArrayNode();
        ArrayNode records = JSON.createArrayNode();
        collect(message, JSON.createArrayNode(), tags, records);
        answer.set("tags", tags);
        answer.set("records", records);
        again(message, version, bytes, buffer.remaining(), answer);
    }

    private static void again(Message message, short version, byte[] bytes, int left, ObjectNode answer) {
        try {
            String hex = HEX.formatHex(bytes(message, version));
            if (!hex.equals(HEX.formatHex(bytes, 0, bytes.length - left))) {
                answer.put("reencode_hex", hex);
            }
        } catch (RuntimeException refusal) {
            answer.put("reencode_error", refusal.getClass().getName());
        }
    }

    /** Unknown tags with the paths of their structs, and the bytes of `records` fields, as the fields are declared. */
    private static void collect(Object value, ArrayNode path, ArrayNode tags, ArrayNode records) throws Exception {
        if (value instanceof Message message) {
            for (RawTaggedField tag : message.unknownTaggedFields()) {
                ObjectNode found = tags.addObject();
                found.set("path", path.deepCopy());
                found.put("tag", tag.tag()).put("hex", HEX.formatHex(tag.data()));
            }
            for (Field field : value.getClass().getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers()) && !field.getName().startsWith("_")) {
                    field.setAccessible(true);
                    Object held = field.get(value);
                    if (RECORDS.contains(field.getType().getSimpleName())) {
                        records.add(held == null ? null : HEX.formatHex(content(held)));
                    } else {
                        collect(held, path.deepCopy().add(field.getName()), tags, records);
                    }
                }
            }
        } else if (value instanceof Collection<?> items) {
            int index = 0;
            for (Object item : items) {
                collect(item, path.deepCopy().add(index++), tags, records);
            }
        }
    }

    private static byte[] content(Object records) throws Exception {
        ByteBuffer buffer = ((ByteBuffer) records.getClass().getMethod("buffer").invoke(records)).duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }
}
