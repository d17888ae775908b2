package judge;

import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;

import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorShard;

/** A running coordinator with its log. Does what CoordinatorRuntime does with calls, on one thread. */
final class Living<S extends CoordinatorShard<CoordinatorRecord>> {
    final S shard;
    final Log log;
    final Timers timers;
    final Tasks tasks;
    /** Whether the last call was refused. */
    boolean refused;
    private final Clock clock;
    private final Function<CoordinatorRecord, List<CoordinatorRecord>> asWritten;
    private final Causes causes;
    private final Batches batches;

    /** `asWritten` replaces a record by one that an older broker might have written. */
    Living(
        S shard,
        Log log,
        Clock clock,
        Timers timers,
        Tasks tasks,
        Function<CoordinatorRecord, List<CoordinatorRecord>> asWritten,
        Causes causes,
        Batches batches
    ) {
        this.shard = shard;
        this.log = log;
        this.clock = clock;
        this.timers = timers;
        this.tasks = tasks;
        this.asWritten = asWritten;
        this.causes = causes;
        this.batches = batches;
    }

    /** Calls the coordinator, and writes and replays its records. Returns its response, or null if it refuses. */
    <T> T call(String name, Function<S, CoordinatorResult<T, CoordinatorRecord>> operation) {
        return call(name, Log.Producer.NONE, () -> operation.apply(shard));
    }

    /** The same on behalf of a producer. */
    <T> T call(String name, Log.Producer producer, Function<S, CoordinatorResult<T, CoordinatorRecord>> operation) {
        return call(name, producer, () -> operation.apply(shard));
    }

    /** Ends the producer's transaction; the marker has the epoch of `producer`. */
    void endTransaction(Log.Producer producer, boolean commit) {
        batches.close();
        log.appendMarker(clock.milliseconds(), producer, commit ? "commit" : "abort");
        TransactionResult result = commit ? TransactionResult.COMMIT : TransactionResult.ABORT;
        shard.replayEndTransactionMarker(producer.id(), producer.epoch(), result);
    }

    /**
     * Runs the next timer that is due at `time` or before, at the time at which it is due. Returns whether there was
     * one.
     */
    boolean runTimer(long time) {
        Timers.Task task = timers.takeDue(time);
        if (task == null) {
            return false;
        }
        clock.set(Math.max(clock.elapsed(), task.due()));
        call(Causes.nameOfTimer(task.key()), Log.Producer.NONE, task.operation());
        return true;
    }

    /** Runs the oldest task of the executor. Returns whether there was one. */
    boolean runTask() {
        Supplier<CoordinatorResult<Void, CoordinatorRecord>> task = tasks.take();
        if (task == null) {
            return false;
        }
        call("executor", Log.Producer.NONE, task);
        return true;
    }

    private <T> T call(String name, Log.Producer producer, Supplier<CoordinatorResult<T, CoordinatorRecord>> operation) {
        CoordinatorResult<T, CoordinatorRecord> result;
        refused = false;
        try {
            result = operation.get();
        } catch (RuntimeException error) {
            // A broker returns the error, or UNKNOWN_SERVER_ERROR if it is not an ApiException.
            refused = true;
            return null;
        }
        long write = log.end();
        long batch = result.records().isEmpty() ? log.end() : batches.of(producer, log.end(), clock.elapsed());
        for (CoordinatorRecord made : result.records()) {
            for (CoordinatorRecord record : asWritten.apply(made)) {
                String why = causes.why(name, record, result.records());
                long offset = log.append(batch, write, clock.milliseconds(), record, producer, name, why);
                if (result.replayRecords()) {
                    shard.replay(offset, producer.id(), producer.epoch(), record);
                }
            }
        }
        if (result.appendFuture() != null) {
            result.appendFuture().complete(null);
        }
        return result.response();
    }
}
