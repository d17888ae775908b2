import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A producer of `rate` records per second, of `size` bytes, in turn to all partitions of its topics.
 *
 * <p>With a `transactional` id it writes in transactions of `transaction` ms, and stopped as "vanish" it leaves the
 * last one open. With `limit` it ends after so many records.
 */
final class Writer extends Member {
    Writer(String bootstrap, JsonNode asked) {
        super(bootstrap, asked);
    }

    @Override
    void live() throws Exception {
        Properties properties = properties();
        String id = asked.path("transactional").asText("");
        if (!id.isEmpty()) {
            properties.put("transactional.id", id);
        }
        properties.putIfAbsent("linger.ms", "20");
        properties.putIfAbsent("max.block.ms", "30000");
        double rate = asked.path("rate").asDouble(10);
        int size = asked.path("size").asInt(40);
        long limit = asked.path("limit").asLong(Long.MAX_VALUE);
        int only = asked.path("partition").asInt(-1);
        Random random = new Random(asked.path("seed").asLong(1));
        ByteArraySerializer bytes = new ByteArraySerializer();
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties, bytes, bytes);
        boolean open = false;
        long begun = 0;
        try {
            if (!id.isEmpty()) {
                producer.initTransactions();
            }
            long start = System.nanoTime();
            for (long sent = 0; stopping == null && sent < limit; ) {
                long due = rate > 1e6 ? limit : (long) ((System.nanoTime() - start) / 1e9 * rate);
                if (sent >= due) {
                    rest(10);
                }
                if (!id.isEmpty() && !open && sent < due) {
                    producer.beginTransaction();
                    open = true;
                    begun = System.currentTimeMillis();
                }
                for (; sent < due && sent < limit; sent++) {
                    for (String topic : topics()) {
                        byte[] key = ("k" + random.nextInt(20)).getBytes(StandardCharsets.UTF_8);
                        byte[] value = ("v" + "x".repeat(Math.max(0, size - 9)) + random.nextInt(99999999))
                            .getBytes(StandardCharsets.UTF_8);
                        int partitions = asked.path("spread").asInt(0);
                        Integer partition = only >= 0 ? Integer.valueOf(only)
                            : partitions > 0 ? Integer.valueOf((int) (sent % partitions)) : null;
                        producer.send(new ProducerRecord<>(topic, partition, key, value));
                        count++;
                    }
                }
                if (open && System.currentTimeMillis() - begun > asked.path("transaction").asInt(300)) {
                    producer.commitTransaction();
                    open = false;
                }
            }
            if ("vanish".equals(stopping)) {
                if (!id.isEmpty() && !open) {
                    producer.beginTransaction();
                    producer.send(new ProducerRecord<>(topics().get(0), only >= 0 ? only : 0, new byte[1], new byte[1]));
                }
                producer.flush();
                Crew.event("vanished", label(), id);
                producer.close(Duration.ZERO); // closing by force sends no EndTxn
                return;
            }
            if (open) {
                producer.commitTransaction();
            }
            producer.flush();
            producer.close(Duration.ofSeconds(5));
            Crew.event("written", label(), count);
        } catch (Exception error) {
            producer.close(Duration.ZERO);
            throw error;
        }
    }
}
