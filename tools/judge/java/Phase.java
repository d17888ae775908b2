package judge;

import java.util.function.Consumer;

/**
 * The current activity of Kafka's classes, so that executed code is counted by phase. Everything runs on one thread.
 */
enum Phase {
    /** Coordinators get calls, write records and replay them. */
    WRITING,
    /** Coordinators replay an existing log with its markers, and are told that they are loaded. */
    LOADING,
    /** Loaded coordinators are asked. */
    ANSWERING;

    private static Phase current = WRITING;
    private static Consumer<Phase> ended = phase -> { };

    /** From now on, `listener` gets each phase when it ends. */
    static void listen(Consumer<Phase> listener) {
        ended = listener;
    }

    /** Begins a phase. Returns the one that ends. */
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
