package judge;

import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Supplier;

import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;

/** The timers of a coordinator, as in CoordinatorTimerImpl; the code that moves the clock runs those that are due. */
final class Timers implements Ticking {
    /**
     * Runs when the time `due` has passed. Of tasks that are due at the same time, the one that was planned first comes
     * first.
     */
    record Task(String key, long due, long number, Supplier<CoordinatorResult<Void, CoordinatorRecord>> operation) {}

    private final Clock clock;
    private final Map<String, Task> byKey = new HashMap<>();
    private final TreeSet<Task> inOrder =
        new TreeSet<>(Comparator.comparingLong(Task::due).thenComparingLong(Task::number));
    private long planned;

    Timers(Clock clock) {
        this.clock = clock;
    }

    /** Takes the next task that is due at `time` or before, or null. */
    Task takeDue(long time) {
        if (inOrder.isEmpty() || inOrder.first().due() > time) {
            return null;
        }
        Task next = inOrder.pollFirst();
        byKey.remove(next.key());
        return next;
    }

    @Override
    public void plan(String key, long delayMs, Supplier<CoordinatorResult<Void, CoordinatorRecord>> operation) {
        cancel(key);
        Task task = new Task(key, clock.elapsed() + delayMs, planned++, operation);
        byKey.put(key, task);
        inOrder.add(task);
    }

    @Override
    public void cancel(String key) {
        Task task = byKey.remove(key);
        if (task != null) {
            inOrder.remove(task);
        }
    }

    @Override
    public boolean isScheduled(String key) {
        return byKey.containsKey(key);
    }
}
