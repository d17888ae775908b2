package kafkarecords;

import java.util.Arrays;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/**
 * Bytes in which rows are built in the form of Spark's UnsafeRow and UnsafeArrayData, without an object per value.
 * Spark copies such a row as a whole if it keeps it.
 *
 * <p>A row has a bit per field (set: null), 8 bytes per field, and after them the values without a fixed width, padded
 * to 8 bytes; the 8 bytes of such a field are its offset from the start of the row, and its size. An array has the same
 * form, with a count before it and elements of their own width. Spark compares and hashes rows by these bytes, so equal
 * rows must have equal bytes: unused bytes are zero, and values without a fixed width are in the order of the fields.
 */
final class RowBuffer {
  private static final long BASE = Platform.BYTE_ARRAY_OFFSET;
  private static final int FEW = 256;
  private static final int KEPT = 1 << 20;
  private static final int LARGEST = Integer.MAX_VALUE - 64;

  byte[] bytes = new byte[512];
  int size;
  /**
   * On the driver, Catalyst folds constants and keeps the rows without a copy. In a task, everything that keeps rows
   * copies them.
   */
  private final boolean isOnDriver = TaskContext.get() == null;

  /** Begins a row. Returns its position. */
  int row(int fields) {
    return zeros(fixed(fields));
  }

  /** Appends whole words, such as those at the start of a row. Returns their position. */
  int append(long[] words) {
    int start = size;
    reserve(8L * words.length);
    size = start + 8 * words.length;
    long at = BASE + start;
    for (long word : words) {
      Platform.putLong(bytes, at, word);
      at += 8;
    }
    return start;
  }

  /** Begins an array of elements of {@code width} bytes. Returns its position. */
  int array(int count, int width) {
    int start = zeros(elements(count) + padded((long) count * width));
    Platform.putLong(bytes, BASE + start, count);
    return start;
  }

  /** The number of bytes before the fields of a row. */
  static int bits(int fields) {
    return fields + 63 >> 6 << 3;
  }

  /** The number of bytes before the elements of an array. */
  static int elements(int count) {
    return 8 + bits(count);
  }

  static int fixed(int fields) {
    return bits(fields) + 8 * fields;
  }

  private static long padded(long length) {
    return length + 7 & ~7L;
  }

  private int zeros(long count) {
    int start = size;
    reserve(count);
    size += (int) count;
    if (count > FEW) {
      Arrays.fill(bytes, start, size, (byte) 0);
    } else {
      for (int at = start; at < size; at += 8) {
        Platform.putLong(bytes, BASE + at, 0);
      }
    }
    return start;
  }

  /**
   * Makes room for the given number of bytes, rounded up to a multiple of 8, which the caller must write completely.
   * Returns their position.
   */
  int room(int length) {
    int start = size;
    long whole = padded(length);
    reserve(whole);
    size = start + (int) whole;
    return start;
  }

  private void reserve(long count) {
    long needed = size + count;
    if (needed > bytes.length) {
      if (needed > LARGEST) {
        throw new IllegalStateException("a decoded record would take more than 2 GiB");
      }
      bytes = Arrays.copyOf(bytes, (int) Math.min(LARGEST, Math.max(needed, 2L * bytes.length)));
    }
  }

  void setNull(int row, int slot) {
    long word = BASE + row + (slot >> 6) * 8L;
    Platform.putLong(bytes, word, Platform.getLong(bytes, word) | 1L << (slot & 63));
  }

  boolean isNull(int row, int slot) {
    return (Platform.getLong(bytes, BASE + row + (slot >> 6) * 8L) >> (slot & 63) & 1) != 0;
  }

  void putByte(int at, byte value) {
    Platform.putByte(bytes, BASE + at, value);
  }

  void putShort(int at, short value) {
    Platform.putShort(bytes, BASE + at, value);
  }

  void putInt(int at, int value) {
    Platform.putInt(bytes, BASE + at, value);
  }

  void putLong(int at, long value) {
    Platform.putLong(bytes, BASE + at, value);
  }

  long long64(int at) {
    return Platform.getLong(bytes, BASE + at);
  }

  short short16(int at) {
    return Platform.getShort(bytes, BASE + at);
  }

  /** Writes offset and size of the bytes that begin at {@code from} into the 8 bytes at {@code at}. */
  void link(int at, int row, int from, int length) {
    putLong(at, (long) (from - row) << 32 | length);
  }

  /** Appends bytes, and zeros up to the next multiple of 8. Returns their position. */
  int append(byte[] data, int from, int length) {
    int start = space(length);
    System.arraycopy(data, from, bytes, start, length);
    return start;
  }

  /** Makes room for bytes, with zeros up to the next multiple of 8. Returns their position. */
  int space(int length) {
    int start = room(length);
    if (length > 0) {
      Platform.putLong(bytes, BASE + size - 8, 0);
    }
    return start;
  }

  /** Empties the buffer, and frees the memory that one huge record needed. */
  RowBuffer emptied() {
    size = 0;
    if (bytes.length > KEPT) {
      bytes = new byte[512];
    }
    return this;
  }

  /** Resets a field to its state before anything was written to it. */
  void clear(int row, int slot, int bits) {
    long word = BASE + row + (slot >> 6) * 8L;
    Platform.putLong(bytes, word, Platform.getLong(bytes, word) & ~(1L << (slot & 63)));
    putLong(row + bits + 8 * slot, 0);
  }

  /** Whether the values without a fixed width are in the order of the fields. */
  boolean isInOrder(int row, int fields, boolean[] isVariable) {
    int last = 0;
    for (int slot = 0; slot < fields; slot++) {
      if (isVariable[slot]) {
        int from = (int) (Platform.getLong(bytes, BASE + row + bits(fields) + 8 * slot) >> 32);
        if (from < last && from != 0) {
          return false;
        }
        last = Math.max(last, from);
      }
    }
    return true;
  }

  /** Moves the values without a fixed width into the order of the fields, and drops overwritten ones. */
  void inOrder(int row, int fields, boolean[] isVariable) {
    int first = row + fixed(fields);
    byte[] old = Arrays.copyOfRange(bytes, first, size);
    size = first;
    for (int slot = 0; slot < fields; slot++) {
      int at = row + bits(fields) + 8 * slot;
      long word = Platform.getLong(bytes, BASE + row + (slot >> 6) * 8L);
      if (isVariable[slot] && (word >> (slot & 63) & 1) == 0) {
        long placed = Platform.getLong(bytes, BASE + at);
        int from = (int) (placed >> 32) - (first - row);
        int length = (int) placed;
        link(at, row, append(old, from, length), length);
      }
    }
  }

  /**
   * The row that begins at {@code row} and ends at the end of the buffer. In a task it is valid until the next row,
   * like the rows of Spark's own projections.
   */
  UnsafeRow row(int row, int fields) {
    UnsafeRow made = new UnsafeRow(fields);
    if (isOnDriver) {
      made.pointTo(Arrays.copyOfRange(bytes, row, size), BASE, size - row);
    } else {
      made.pointTo(bytes, BASE + row, size - row);
    }
    return made;
  }
}
