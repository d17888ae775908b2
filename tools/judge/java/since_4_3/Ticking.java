package judge;

import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;

/** The timer of a coordinator, with the types that its operations have since 4.3. */
interface Ticking extends CoordinatorTimer<CoordinatorRecord> {
    /** Takes the place of what is planned under the key. */
    void plan(String key, long delayMs, Supplier<CoordinatorResult<Void, CoordinatorRecord>> operation);

    @Override
    default void schedule(
        String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation
    ) {
        plan(key, unit.toMillis(delay), operation::generateRecords);
    }

    @Override
    default void schedule(
        String key, long delay, TimeUnit unit, boolean retry, long backoff, TimeoutOperation<CoordinatorRecord> operation
    ) {
        schedule(key, delay, unit, retry, operation);
    }

    @Override
    default void scheduleIfAbsent(
        String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation
    ) {
        if (!isScheduled(key)) {
            schedule(key, delay, unit, retry, operation);
        }
    }
}
