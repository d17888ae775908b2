import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A consumer of a share group that accepts records; for every `refused`-th offset, it does what `refusal` says. */
final class Sharer extends Member {
    private final Ledger ledger;
    private final Set<String> given = new TreeSet<>();
    private volatile int every;

    Sharer(String bootstrap, JsonNode asked, Ledger ledger) {
        super(bootstrap, asked);
        this.ledger = ledger;
        this.every = asked.path("refused").asInt(0);
    }

    @Override
    void set(JsonNode changes) {
        super.set(changes);
        every = changes.path("refused").asInt(every);
    }

    @Override
    void live() {
        Properties properties = properties();
        properties.putIfAbsent("group.id", asked.get("group").asText());
        properties.put("share.acknowledgement.mode", "explicit");
        properties.putIfAbsent("max.poll.records", "20");
        AcknowledgeType refusal = AcknowledgeType.valueOf(asked.path("refusal").asText("RELEASE"));
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(properties, bytes, bytes)) {
            consumer.subscribe(topics());
            while (stopping == null) {
                if (stalled) {
                    rest(50);
                    continue;
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(300))) {
                    if (pause > 0) {
                        rest(pause);
                    }
                    if (every > 0 && record.offset() % every == 0) {
                        if (given.add(record.topic() + "-" + record.partition() + "@" + record.offset())) {
                            Crew.event("refused", label(),
                                record.topic() + "-" + record.partition() + "@" + record.offset());
                        }
                        consumer.acknowledge(record, refusal);
                    } else {
                        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                        ledger.acknowledged(asked.get("group").asText(), record.topic(), record.partition(),
                            record.offset());
                    }
                    count++;
                }
                consumer.commitSync();
            }
        }
    }
}
