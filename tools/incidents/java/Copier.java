import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Reads topics, writes to the topic `to`, and commits its offsets in transactions of at least `transaction` ms. */
final class Copier extends Member {
    private final Ledger ledger;

    Copier(String bootstrap, JsonNode asked, Ledger ledger) {
        super(bootstrap, asked);
        this.ledger = ledger;
    }

    @Override
    void live() throws Exception {
        Properties reading = properties();
        reading.putIfAbsent("group.id", asked.get("group").asText());
        reading.putIfAbsent("auto.offset.reset", "earliest");
        reading.putIfAbsent("max.poll.records", "50");
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", "false");
        Properties writing = new Properties();
        writing.put("bootstrap.servers", bootstrap);
        writing.put("client.id", asked.path("client").asText(label()) + "-producer");
        writing.put("transactional.id", asked.get("transactional").asText());
        writing.put("transaction.timeout.ms", asked.path("timeout").asText("60000"));
        ByteArrayDeserializer in = new ByteArrayDeserializer();
        ByteArraySerializer out = new ByteArraySerializer();
        String to = asked.get("to").asText();
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(writing, out, out);
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(reading, in, in);
        try {
            producer.initTransactions();
            consumer.subscribe(topics());
            while (stopping == null) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    producer.send(new ProducerRecord<>(to, record.key(), record.value()));
                    ledger.read(asked.get("group").asText(), record.topic(), record.partition(), record.offset());
                    count++;
                    read.put(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(read, consumer.groupMetadata());
                producer.flush();
                rest(asked.path("transaction").asInt(100));
                if (asked.has("hang") && count >= asked.get("hang").asLong() || "vanish".equals(stopping)) {
                    Crew.event("vanished", label(), asked.get("transactional").asText());
                    producer.close(Duration.ZERO);
                    return;
                }
                producer.commitTransaction();
                rest(pause);
            }
        } catch (Exception error) {
            try {
                producer.abortTransaction(); // so that only a killed process leaves a transaction open
            } catch (Exception worse) {
                Crew.event("not aborted", label(), worse);
            }
            throw error;
        } finally {
            consumer.close();
            producer.close(Duration.ZERO);
        }
    }
}
