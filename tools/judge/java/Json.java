package judge;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.zip.Deflater;
import java.util.zip.GZIPOutputStream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** The files of a history: one JSON object per line, compressed. */
final class Json {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final ObjectMapper MAPPER = new ObjectMapper();
    /** Numbers by value, everything else by its JSON text. */
    static final Comparator<JsonNode> ORDER =
        (one, other) -> one.isNumber() && other.isNumber()
            ? Long.compare(one.asLong(), other.asLong())
            : one.toString().compareTo(other.toString());

    private Json() {}

    static ObjectNode object() {
        return NODES.objectNode();
    }

    static ArrayNode array() {
        return NODES.arrayNode();
    }

    static JsonNode parse(String line) {
        try {
            return MAPPER.readTree(line);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The same node with every array in it sorted. */
    static JsonNode sorted(JsonNode node) {
        if (node.isObject()) {
            ObjectNode copy = object();
            node.properties().forEach(field -> copy.set(field.getKey(), sorted(field.getValue())));
            return copy;
        }
        if (!node.isArray()) {
            return node;
        }
        List<JsonNode> elements = new ArrayList<>();
        node.forEach(element -> elements.add(sorted(element)));
        elements.sort(ORDER);
        return array().addAll(elements);
    }

    static void write(Path file, List<ObjectNode> lines) {
        try (OutputStream stream = new Quick(Files.newOutputStream(file))) {
            for (ObjectNode line : lines) {
                stream.write(MAPPER.writeValueAsBytes(line));
                stream.write('\n');
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static final class Quick extends GZIPOutputStream {
        Quick(OutputStream stream) throws IOException {
            super(stream, 1 << 16);
            def.setLevel(Deflater.BEST_SPEED);
        }
    }
}
