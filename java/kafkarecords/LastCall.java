package kafkarecords;

import org.apache.spark.unsafe.Platform;

/**
 * The arguments of the last call, so that a function decodes each record only once.
 *
 * <p>Catalyst copies a deterministic function into each filter and each projection that uses its result, but all copies
 * in one task are the same object. They are called with the same arguments, one right after the other. The bytes are
 * compared, not the references: a source may reuse an array, or pass another one for the same record.
 */
final class LastCall {
  private static final int LARGEST = 1 << 16;
  private static final int KEPT_OF_PERIOD = 16;
  private static final int PERIOD = 1024;
  private static final int NULL = -1;
  private static final int NONE = -2;

  private final byte[][] bytes = {new byte[256], new byte[256]};
  private final int[] lengths = {NONE, NONE};
  private int flags;
  /** The number of calls since the last one with the same arguments as the call before it. */
  private int missesInARow;

  /** Whether the last call was kept and had these arguments. */
  boolean was(byte[] first, byte[] second, int flags) {
    boolean found = flags == this.flags && isSame(0, first) && isSame(1, second);
    missesInARow = found ? 0 : missesInARow + 1;
    return found;
  }

  private boolean isSame(int at, byte[] given) {
    int length = lengths[at];
    if (given == null) {
      return length == NULL;
    }
    if (length != given.length) {
      return false;
    }
    byte[] kept = bytes[at];
    if (length < 8) {
      for (int place = 0; place < length; place++) {
        if (kept[place] != given[place]) {
          return false;
        }
      }
      return true;
    }
    // Differences between consecutive records are mostly at the end.
    for (int place = length - 8; place > 0; place -= 8) {
      if (word(kept, place) != word(given, place)) {
        return false;
      }
    }
    return word(kept, 0) == word(given, 0);
  }

  private static long word(byte[] data, int place) {
    return Platform.getLong(data, Platform.BYTE_ARRAY_OFFSET + place);
  }

  /**
   * Keeps the arguments of a call that has returned, unless they are large. If no call repeats the one before it, only
   * some calls are kept, which is enough to notice when that changes.
   */
  void keep(byte[] first, byte[] second, int flags) {
    if ((missesInARow & PERIOD - 1) > KEPT_OF_PERIOD) {
      return;
    }
    this.flags = flags;
    keep(0, first);
    keep(1, second);
  }

  /** Forgets the last call, before the row that it returned is overwritten. */
  void forget() {
    lengths[0] = NONE;
  }

  private void keep(int at, byte[] given) {
    if (given == null) {
      lengths[at] = NULL;
      return;
    }
    int length = given.length;
    if (length > bytes[at].length) {
      if (length > LARGEST) {
        lengths[0] = NONE;
        return;
      }
      bytes[at] = new byte[Integer.highestOneBit(length) * 2];
    }
    System.arraycopy(given, 0, bytes[at], 0, length);
    lengths[at] = length;
  }
}
