package judge;

import java.util.function.Supplier;

import org.apache.kafka.common.utils.Time;

/**
 * The clock of a history, in milliseconds since 1970, which only changes when it is set; and the time that has passed.
 */
final class Clock implements Time {
    private long now;
    /** The difference between the clock and the time that has passed. */
    private long shift;

    Clock(long now) {
        this.now = now;
    }

    /** Lets time pass until `elapsed`, which never goes back. Timers use this time. */
    void set(long elapsed) {
        if (elapsed < now) {
            throw new IllegalArgumentException("Time is at " + now + " and does not go back to " + elapsed);
        }
        now = elapsed;
    }

    /** Moves the clock back or ahead, without any time passing. */
    void jump(long milliseconds) {
        shift += milliseconds;
    }

    /** The time that has passed. Without jumps, it is the time of the clock. */
    long elapsed() {
        return now;
    }

    @Override
    public long milliseconds() {
        return now + shift;
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
