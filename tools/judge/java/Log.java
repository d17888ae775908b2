package judge;

import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde;

/** One log partition in memory: records and markers in order, each with the call that wrote it. */
final class Log {
    /** The producer of a transaction; `NONE` outside transactions. */
    record Producer(long id, short epoch) {
        static final Producer NONE = new Producer(-1, (short) -1);

        boolean isTransactional() {
            return id != -1;
        }
    }

    /**
     * A record, or a marker: then `control` is "commit" or "abort" and there is no key. `write` is the offset of the first
     * record of its call, which may share its batch with others.
     */
    record Entry(
        long offset, long batch, long timestamp, byte[] key, byte[] value, Producer producer, String control,
        String call, String why, long write
    ) {
        boolean isMarker() {
            return control != null;
        }
    }

    final String topic;
    final CoordinatorRecordSerde serde;
    final List<Entry> entries = new ArrayList<>();

    Log(String topic, CoordinatorRecordSerde serde) {
        this.topic = topic;
        this.serde = serde;
    }

    /** The offset of the next entry. */
    long end() {
        return entries.size();
    }

    /** Appends a record to the batch that began at `batch` and the write that began at `write`; returns its offset. */
    long append(
        long batch, long write, long timestamp, CoordinatorRecord record, Producer producer, String call, String why
    ) {
        byte[] key = serde.serializeKey(record);
        byte[] value = serde.serializeValue(record);
        return append(new Entry(end(), batch, timestamp, key, value, producer, null, call, why, write));
    }

    long appendMarker(long timestamp, Producer producer, String control) {
        return append(new Entry(end(), end(), timestamp, null, null, producer, control, "end_transaction", null, end()));
    }

    private long append(Entry entry) {
        entries.add(entry);
        return entry.offset();
    }
}
