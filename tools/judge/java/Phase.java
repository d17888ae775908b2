package judge;

import java.util.function.Consumer;

/** What Kafka's classes are doing now, so that reached code is counted by phase. One thread does all of it. */
enum Phase {
    /** Coordinators take calls, write records and replay them. */
    WRITING,
    /** Coordinators replay an existing log, with its markers, and learn that they are loaded. */
    LOADING,
    /** Loaded coordinators are asked. */
    ANSWERING;

    private static Phase current = WRITING;
    private static Consumer<Phase> ended = phase -> { };

    /** From now on `listener` gets each phase that has just ended. */
    static void listen(Consumer<Phase> listener) {
        ended = listener;
    }

    /** Begins a phase; returns the one that it ends. */
    static Phase enter(Phase phase) {
        Phase before = current;
        if (phase != before) {
            ended.accept(before);
            current = phase;
        }
        return before;
    }

    /** Gives the listener the current phase, as if it had ended. */
    static void flush() {
        ended.accept(current);
    }
}
