package judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.GZIPInputStream;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** A log with the header of its file, which has the questions about it. */
record Recorded(JsonNode header, Log log) {
    private static final HexFormat HEX = HexFormat.of();

    static Log emptyLog(String topic) {
        return new Log(
            topic, topic.equals(Kafka.OFFSETS) ? new GroupCoordinatorRecordSerde() : new ShareCoordinatorRecordSerde()
        );
    }

    /** Reads `name`.log.jsonl.gz, which does not say what wrote a record. Offsets may have gaps. */
    static Recorded read(Path folder, String name) {
        Path file = folder.resolve(name + ".log.jsonl.gz");
        try (var lines = new BufferedReader(
            new InputStreamReader(new GZIPInputStream(Files.newInputStream(file)), StandardCharsets.UTF_8)
        )) {
            JsonNode header = Json.parse(lines.readLine());
            Log log = emptyLog(header.get("topic").asText());
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                log.entries.add(entry(Json.parse(line)));
            }
            return new Recorded(header, log);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Log.Entry entry(JsonNode line) {
        JsonNode value = line.get("value");
        return new Log.Entry(
            line.get("offset").asLong(), line.get("batch").asLong(), line.get("timestamp_ms").asLong(),
            line.has("key") ? HEX.parseHex(line.get("key").asText()) : null,
            value == null || value.isNull() ? null : HEX.parseHex(value.asText()),
            new Log.Producer(line.get("producer_id").asLong(), (short) line.get("producer_epoch").asInt()),
            line.has("control") ? line.get("control").asText() : null, null, null, line.get("batch").asLong()
        );
    }

    void write(Path folder) {
        List<ObjectNode> lines = new ArrayList<>();
        lines.add((ObjectNode) header);
        log.entries.forEach(entry -> lines.add(line(entry)));
        Json.write(folder.resolve(name() + ".log.jsonl.gz"), lines);
    }

    private static ObjectNode line(Log.Entry entry) {
        ObjectNode line = Json.object().put("offset", entry.offset()).put("batch", entry.batch())
            .put("timestamp_ms", entry.timestamp());
        if (!entry.isMarker()) {
            line.put("key", HEX.formatHex(entry.key()));
            line.put("value", entry.value() == null ? null : HEX.formatHex(entry.value()));
        }
        line.put("producer_id", entry.producer().id()).put("producer_epoch", entry.producer().epoch());
        if (entry.isMarker()) {
            return line.put("control", entry.control());
        }
        return line.put("transactional", entry.producer().isTransactional());
    }

    String name() {
        return header.get("history").asText();
    }

    /** Asks the questions in the header, and writes the answers of Kafka's coordinators. */
    void answer(Path folder) {
        Phase before = Phase.enter(Phase.ANSWERING);
        try {
            Json.write(folder.resolve(name() + ".answers.jsonl.gz"), answers());
        } finally {
            Phase.enter(before);
        }
    }

    private List<ObjectNode> answers() {
        Kafka kafka = new Kafka(settings());
        Loaded loaded = new Loaded(log);
        List<ObjectNode> answers = new ArrayList<>();
        for (JsonNode asked : header.get("questions")) {
            Topics topics = Topics.NONE;
            for (JsonNode topic : asked.get("topics")) {
                topics = topics.with(new Topics.Topic(
                    topic.get("name").asText(), Uuid.fromString(topic.get("id").asText()), topic.get("partitions").asInt()
                ));
            }
            Moment moment = new Moment(asked.get("cut").asLong(), asked.get("now_ms").asLong(), topics);
            answers.addAll(answers(kafka, loaded, moment, asked));
        }
        return answers;
    }

    private List<ObjectNode> answers(Kafka kafka, Loaded loaded, Moment moment, JsonNode asked) {
        try {
            if (asked.has("is_loading_alone")) {
                return List.of(new Loading(kafka, loaded, moment).answer(log.topic));
            }
            return log.topic.equals(Kafka.OFFSETS)
                ? new GroupAnswers(kafka, loaded, moment).all(times(asked.get("cleanup_at_ms")))
                : NewKinds.shareAnswers(kafka, loaded, moment, times(asked.get("snapshot_at_ms")));
        } catch (Loaded.Refused refused) {
            return List.of(
                Json.object().put("cut", moment.cut()).put("question", "load").put("error", refused.getMessage())
            );
        }
    }

    /** A log up to `cut`, loaded at the time `now`, with the topics of that time. */
    record Moment(long cut, long now, Topics topics) {}

    private Map<String, String> settings() {
        Map<String, String> settings = new TreeMap<>();
        header.get("settings").properties().forEach(each -> settings.put(each.getKey(), each.getValue().asText()));
        return settings;
    }

    private static List<Long> times(JsonNode node) {
        List<Long> times = new ArrayList<>();
        node.forEach(time -> times.add(time.asLong()));
        return times;
    }
}
