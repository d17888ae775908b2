package judge;

import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;

/** The timers of a coordinator, as in CoordinatorTimerImpl; the code that moves the clock runs those that are due. */
final class Timers implements CoordinatorTimer<CoordinatorRecord> {
    /** What runs at the time `due`; the first scheduled comes first among those that are due together. */
    record Task(String key, long due, long number, TimeoutOperation<CoordinatorRecord> operation) {}

    private final Clock clock;
    private final Map<String, Task> byKey = new HashMap<>();
    private final TreeSet<Task> inOrder =
        new TreeSet<>(Comparator.comparingLong(Task::due).thenComparingLong(Task::number));
    private long scheduled;

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
    public void schedule(
        String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation
    ) {
        cancel(key);
        Task task = new Task(key, clock.milliseconds() + unit.toMillis(delay), scheduled++, operation);
        byKey.put(key, task);
        inOrder.add(task);
    }

    @Override
    public void schedule(
        String key, long delay, TimeUnit unit, boolean retry, long backoff, TimeoutOperation<CoordinatorRecord> operation
    ) {
        schedule(key, delay, unit, retry, operation);
    }

    @Override
    public void scheduleIfAbsent(
        String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation
    ) {
        if (!isScheduled(key)) {
            schedule(key, delay, unit, retry, operation);
        }
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
