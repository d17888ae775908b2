package judge;

import java.util.function.Consumer;

/** What Kafka's classes are doing, so that what they run through can be told apart. One thread does all of it. */
enum Phase {
    /** Coordinators take calls, write records and replay them. */
    WRITING,
    /** Coordinators replay a log that is there, with its markers, and are told that they are loaded. */
    LOADING,
    /** Loaded coordinators are asked. */
    ANSWERING;

    private static Phase current = WRITING;
    private static Consumer<Phase> ended = phase -> { };

    /** From now on `listener` is told which phase has just ended. */
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

    /** Tells the listener of the one that goes on, as if it had ended. */
    static void flush() {
        ended.accept(current);
    }
}
