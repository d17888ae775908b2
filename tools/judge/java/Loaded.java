package judge;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorShard;

/** A log as a coordinator reads it when it becomes responsible for the partition, as in CoordinatorLoaderImpl. */
final class Loaded {
    private final Log log;
    private final List<CoordinatorRecord> records = new ArrayList<>();

    Loaded(Log log) {
        this.log = log;
        for (Log.Entry entry : log.entries) {
            records.add(entry.isMarker() ? null : record(log, entry));
        }
    }

    private static CoordinatorRecord record(Log log, Log.Entry entry) {
        ByteBuffer value = entry.value() == null ? null : ByteBuffer.wrap(entry.value());
        return log.serde.deserialize(ByteBuffer.wrap(entry.key()), value);
    }

    /** A coordinator refuses a record, and therefore the partition. */
    static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Refused(RuntimeException cause) {
            super(cause.getMessage(), cause);
        }
    }

    /**
     * Passes everything up to and including the offset `cut` to a coordinator, which is loaded then. Throws Refused.
     */
    <S extends CoordinatorShard<CoordinatorRecord>> S into(S shard, long cut, Topics topics) {
        Phase before = Phase.enter(Phase.LOADING);
        try {
            load(shard, cut, topics);
        } finally {
            Phase.enter(before);
        }
        return shard;
    }

    private void load(CoordinatorShard<CoordinatorRecord> shard, long cut, Topics topics) {
        for (int number = 0; number < count(cut); number++) {
            Log.Entry entry = log.entries.get(number);
            long producer = entry.producer().id();
            short epoch = entry.producer().epoch();
            if (entry.isMarker()) {
                boolean isCommitted = entry.control().equals("commit");
                TransactionResult result = isCommitted ? TransactionResult.COMMIT : TransactionResult.ABORT;
                shard.replayEndTransactionMarker(producer, epoch, result);
            } else {
                replay(shard, entry, records.get(number));
            }
        }
        try {
            Cluster.load(shard, topics);
        } catch (RuntimeException refused) {
            throw new Refused(refused);
        }
    }

    private static void replay(CoordinatorShard<CoordinatorRecord> shard, Log.Entry entry, CoordinatorRecord record) {
        try {
            shard.replay(entry.offset(), entry.producer().id(), entry.producer().epoch(), record);
        } catch (RuntimeException refused) {
            throw new Refused(refused);
        }
    }

    /** The records up to the cut, without markers. */
    List<CoordinatorRecord> upTo(long cut) {
        return records.subList(0, count(cut)).stream().filter(Objects::nonNull).toList();
    }

    private int count(long cut) {
        int count = (int) Math.min(cut + 1, log.entries.size());
        while (count > 0 && log.entries.get(count - 1).offset() > cut) {
            count--;
        }
        return count;
    }
}
