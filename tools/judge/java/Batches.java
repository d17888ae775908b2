package judge;

/** The batch of each write, as in CoordinatorRuntime, which appends writes within some milliseconds together. */
final class Batches {
    private static final int LINGER_MS = 10;
    private static final int MOST_RECORDS = 40;

    private final Chance chance;
    private final boolean areShared;
    private long first = -1;
    private long opened;

    /** Without `areShared`, each write has its own batch. */
    Batches(Chance chance, boolean areShared) {
        this.chance = chance;
        this.areShared = areShared;
    }

    /** The base offset of the batch for a write at `end`. Transactions never share a batch. */
    long of(Log.Producer producer, long end, long elapsed) {
        if (!areShared || producer.isTransactional()) {
            close();
            return end;
        }
        boolean goesOn = first >= 0 && elapsed - opened <= LINGER_MS && end - first < MOST_RECORDS && chance.is(80);
        if (!goesOn) {
            first = end;
            opened = elapsed;
        }
        return first;
    }

    /** Lets the next write begin a batch. */
    void close() {
        first = -1;
    }
}
