package judge;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;

import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;

/** The executor of a coordinator: tasks wait until they are taken, in the order of their arrival. */
final class Tasks implements CoordinatorExecutor<CoordinatorRecord> {
    private final Map<String, Supplier<CoordinatorResult<Void, CoordinatorRecord>>> waiting = new LinkedHashMap<>();

    /** Takes the oldest task, or null. It supplies the records of its completion. */
    Supplier<CoordinatorResult<Void, CoordinatorRecord>> take() {
        var tasks = waiting.values().iterator();
        if (!tasks.hasNext()) {
            return null;
        }
        var task = tasks.next();
        tasks.remove();
        return task;
    }

    @Override
    public <R> boolean schedule(String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
        return waiting.putIfAbsent(key, () -> complete(task, operation)) == null;
    }

    private static <R> CoordinatorResult<Void, CoordinatorRecord> complete(
        TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation
    ) {
        R result;
        try {
            result = task.run();
        } catch (Throwable thrown) {
            return operation.onComplete(null, thrown);
        }
        return operation.onComplete(result, null);
    }

    @Override
    public boolean isScheduled(String key) {
        return waiting.containsKey(key);
    }

    @Override
    public void cancel(String key) {
        waiting.remove(key);
    }
}
