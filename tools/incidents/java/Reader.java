import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A consumer of a classic or a consumer group that commits what it has read, every `commit` ms; with `assign`, a
 * consumer without a group, which commits nothing.
 */
final class Reader extends Member {
    private final Ledger ledger;
    private final Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
    private final String poison;
    private final int commitEvery;
    private final int endsAfter;
    /** A partition that the application pauses and does not resume. */
    private volatile String leftOut;

    Reader(String bootstrap, JsonNode asked, Ledger ledger) {
        super(bootstrap, asked);
        this.ledger = ledger;
        this.poison = asked.path("poison").asText("");
        this.commitEvery = asked.path("commit").asInt(1000);
        this.endsAfter = asked.path("life").asInt(0);
        this.leftOut = asked.path("left_out").asText("");
    }

    @Override
    void set(JsonNode changes) {
        super.set(changes);
        leftOut = changes.path("left_out").asText(leftOut);
    }

    @Override
    void live() throws Exception {
        Properties properties = properties();
        if (!asked.path("assign").asBoolean()) {
            properties.putIfAbsent("group.id", asked.get("group").asText());
        }
        properties.putIfAbsent("auto.offset.reset", "earliest");
        properties.putIfAbsent("max.poll.records", "50");
        properties.put("enable.auto.commit", "false");
        read.clear();
        long born = System.currentTimeMillis();
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, bytes, bytes);
        try {
            if (asked.path("assign").asBoolean()) {
                consumer.assign(partitions(consumer));
            } else {
                consumer.subscribe(topics(), new Listener(consumer));
            }
            long committed = System.currentTimeMillis();
            while (stopping == null) {
                if (stalled) {
                    rest(50);
                    continue;
                }
                consumer.pause(consumer.assignment().stream().filter(each -> each.toString().equals(leftOut)).toList());
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    String place = record.topic() + "-" + record.partition();
                    if (place.equals(leftOut)) {
                        continue; // it was fetched before it was paused
                    }
                    if (poison.equals(place + "@" + record.offset())) {
                        commit(consumer);
                        throw new IllegalStateException("cannot read " + poison);
                    }
                    while (stalled && stopping == null) {
                        rest(50);
                    }
                    ledger.read(asked.get("group").asText(), record.topic(), record.partition(), record.offset());
                    count++;
                    read.put(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                    if (pause > 0) {
                        rest(pause);
                    }
                }
                if (asked.path("assign").asBoolean()) {
                    read.clear();
                } else if (System.currentTimeMillis() - committed >= commitEvery) {
                    commit(consumer);
                    committed = System.currentTimeMillis();
                }
                if (endsAfter > 0 && System.currentTimeMillis() - born > endsAfter) {
                    commit(consumer);
                    throw new IllegalStateException("restarted after " + endsAfter + " ms");
                }
            }
            if ("leave".equals(stopping)) {
                commit(consumer);
            }
        } finally {
            CloseOptions options = CloseOptions.timeout(Duration.ofSeconds(5));
            if ("vanish".equals(stopping)) {
                options = options.withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP);
            }
            consumer.close(options);
        }
    }

    private List<TopicPartition> partitions(KafkaConsumer<byte[], byte[]> consumer) {
        List<TopicPartition> found = new ArrayList<>();
        for (String topic : topics()) {
            consumer.partitionsFor(topic).forEach(each -> found.add(new TopicPartition(topic, each.partition())));
        }
        return found;
    }

    private void commit(KafkaConsumer<byte[], byte[]> consumer) {
        if (read.isEmpty()) {
            return;
        }
        try {
            consumer.commitSync(new HashMap<>(read), Duration.ofSeconds(10));
            read.clear();
        } catch (RebalanceInProgressException | CommitFailedException later) {
            Crew.event("refused", label(), later.getMessage());
        } catch (org.apache.kafka.common.errors.TimeoutException slow) {
            Crew.event("timeout", label(), slow.getMessage());
        }
    }

    private final class Listener implements ConsumerRebalanceListener {
        private final KafkaConsumer<byte[], byte[]> consumer;

        Listener(KafkaConsumer<byte[], byte[]> consumer) {
            this.consumer = consumer;
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            commit(consumer);
            read.keySet().removeAll(partitions);
            Crew.event("revoked", label(), partitions);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            Crew.event("assigned", label(), partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            read.keySet().removeAll(partitions);
            Crew.event("lost", label(), partitions);
        }
    }
}
