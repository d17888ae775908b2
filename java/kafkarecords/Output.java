package kafkarecords;

import java.util.Arrays;

/** The bytes of a message that is being written. */
final class Output {
  private byte[] bytes = new byte[256];
  private int size;

  private void reserve(int count) {
    if (bytes.length - size < count) {
      bytes = Arrays.copyOf(bytes, (int) Math.min(Integer.MAX_VALUE - 64, Math.max(size + (long) count, 2L * bytes.length)));
    }
  }

  void int8(int value) {
    reserve(1);
    bytes[size++] = (byte) value;
  }

  /** Writes the lowest {@code width} bytes of a number, highest byte first. */
  void number(long value, int width) {
    reserve(width);
    for (int shift = 8 * (width - 1); shift >= 0; shift -= 8) {
      bytes[size++] = (byte) (value >> shift);
    }
  }

  void uvarint(int value) {
    reserve(5);
    while ((value & ~0x7F) != 0) {
      bytes[size++] = (byte) (value & 0x7F | 0x80);
      value >>>= 7;
    }
    bytes[size++] = (byte) value;
  }

  /** Writes a length or count, -1 for null. */
  void length(Head head, int length) {
    switch (head) {
      case INT16:
        number(length, 2);
        break;
      case INT32:
        number(length, 4);
        break;
      default:
        uvarint(length + 1);
    }
  }

  void raw(byte[] data) {
    reserve(data.length);
    System.arraycopy(data, 0, bytes, size, data.length);
    size += data.length;
  }

  Output emptied() {
    size = 0;
    return this;
  }

  byte[] copy() {
    return Arrays.copyOf(bytes, size);
  }
}
