package judge;

import java.util.function.Supplier;

import org.apache.kafka.common.utils.Time;

/** The clock of a history, in milliseconds since 1970. It stands still until it is set. */
final class Clock implements Time {
    private long now;

    Clock(long now) {
        this.now = now;
    }

    /** Sets the clock, which never goes back. */
    void set(long milliseconds) {
        if (milliseconds < now) {
            throw new IllegalArgumentException("The clock is at " + now + " and does not go back to " + milliseconds);
        }
        now = milliseconds;
    }

    @Override
    public long milliseconds() {
        return now;
    }

    @Override
    public long nanoseconds() {
        return now * 1_000_000;
    }

    @Override
    public void sleep(long milliseconds) {
        throw new UnsupportedOperationException("Nothing sleeps in a history");
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
        throw new UnsupportedOperationException("Nothing waits in a history");
    }
}
