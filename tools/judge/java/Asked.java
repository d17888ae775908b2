package judge;

import java.util.List;
import java.util.TreeSet;

import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;

/** The times about which a history asks at a cut, in addition to its present state. */
final class Asked {
    private static final long DAY = 86_400_000;

    private Asked() {}

    /**
     * Times of clean-ups: soon, much later, and for a few objects, the time when they are due and the millisecond
     * before.
     */
    static List<Long> cleanups(Chance chance, List<CoordinatorRecord> records, long now, long retention) {
        TreeSet<Long> due = new TreeSet<>();
        for (CoordinatorRecord record : records) {
            if (record.value() == null) {
                continue;
            }
            if (record.value().message() instanceof OffsetCommitValue value) {
                due.add(value.expireTimestamp() >= 0 ? value.expireTimestamp() : value.commitTimestamp() + retention);
            } else if (record.value().message() instanceof GroupMetadataValue value) {
                due.add(value.currentStateTimestamp() + retention);
            }
        }
        due.removeIf(time -> time <= now);
        TreeSet<Long> times =
            new TreeSet<>(List.of(now + 1, now + retention / 2, now + retention, now + 10 * retention + DAY));
        for (long time : chance.some(due, 1, 4)) {
            times.add(time);
            times.add(Math.max(now, time - 1));
        }
        return List.copyOf(times);
    }

    /** Times at which the job for cold partitions runs: soon, when some of them are cold, and when all are. */
    static List<Long> coldSnapshots(long now, long interval) {
        return List.of(now + 1, now + interval / 2, now + 100 * interval);
    }
}
