package judge;

/** Which batch a write goes to: as in CoordinatorRuntime, which appends what comes within some milliseconds at once. */
final class Batches {
    private static final int LINGER_MS = 10;
    private static final int MOST_RECORDS = 40;

    private final Chance chance;
    private final boolean areShared;
    private long first = -1;
    private long opened;

    /** Without `areShared` each write has a batch of its own. */
    Batches(Chance chance, boolean areShared) {
        this.chance = chance;
        this.areShared = areShared;
    }

    /** The offset at which the batch began that takes a write at `end`. Transactions never share a batch. */
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

    /** The next write begins a batch. */
    void close() {
        first = -1;
    }
}
