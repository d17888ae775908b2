package kafkarecords;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.unsafe.Platform;

/**
 * The bytes of one message, the current position, and the leniencies so far.
 *
 * <p>Everything is big-endian. A read method moves the cursor. It never moves it past {@code end} and never allocates
 * memory before it has compared a length with the number of bytes left. The rules, names and texts are those of {@code
 * kafka_records_runtime.wire.primitives}; reading is as lenient as in Kafka's own classes.
 */
final class Cursor {
  private static final int MAX_STRING = 32767;
  private static final boolean IS_BIG_ENDIAN = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN;
  private static final byte[] URL_SAFE =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".getBytes(StandardCharsets.US_ASCII);
  /** The two base64 characters for each 12-bit number, in this machine's byte order. */
  private static final short[] TWO_CHARACTERS = new short[1 << 12];
  private static final long NOT_ASCII = 0x8080808080808080L;
  /** A string of at most this length is copied and checked at once. */
  private static final int SHORT_TEXT = 64;
  /** The number of characters of a uuid as text. */
  static final int UUID_TEXT = 22;

  static {
    for (int bits = 0; bits < TWO_CHARACTERS.length; bits++) {
      int first = URL_SAFE[bits >> 6];
      int second = URL_SAFE[bits & 63];
      TWO_CHARACTERS[bits] = (short) (IS_BIG_ENDIAN ? first << 8 | second : second << 8 | first);
    }
  }

  byte[] data;
  int end;
  /** Where the message begins; offsets in errors are counted from there. */
  int start;
  int pos;
  /** The number of elements without bytes that may still be read, so that no input takes more than linear time. */
  int spare;
  boolean hasUnknownTags;
  /** Names of leniencies, in the order of reading; null if there are none. */
  List<String> leniencies;

  /** Sets the cursor to the start of a message. */
  Cursor at(byte[] data, int start) {
    this.data = data;
    this.start = start;
    pos = start;
    end = data.length;
    spare = end - start;
    hasUnknownTags = false;
    leniencies = null;
    return this;
  }

  int left() {
    return end - pos;
  }

  void concede(String leniency) {
    if (leniencies == null) {
      leniencies = new ArrayList<>();
    }
    leniencies.add(leniency);
  }

  ReadFailure failure(String reason, int at, String detail) {
    return new ReadFailure(reason, at - start, detail);
  }

  private void need(int bytes) {
    if (end - pos < bytes) {
      throw underflow(bytes, pos);
    }
  }

  ReadFailure underflow(long needed, int at) {
    String left = ", but " + (end - at) + (end - at == 1 ? " is left" : " are left");
    return failure("BufferUnderflow", at, "needs " + plural(needed, "byte") + left);
  }

  static String plural(long count, String noun) {
    return count == 1 ? "1 " + noun : count + " " + noun + "s";
  }

  byte int8() {
    need(1);
    return data[pos++];
  }

  short int16() {
    need(2);
    int at = pos;
    pos = at + 2;
    return (short) (data[at] << 8 | data[at + 1] & 0xFF);
  }

  int int32() {
    need(4);
    int found = Platform.getInt(data, Platform.BYTE_ARRAY_OFFSET + pos);
    pos += 4;
    return IS_BIG_ENDIAN ? found : Integer.reverseBytes(found);
  }

  long int64() {
    need(8);
    long found = Platform.getLong(data, Platform.BYTE_ARRAY_OFFSET + pos);
    pos += 8;
    return IS_BIG_ENDIAN ? found : Long.reverseBytes(found);
  }

  /** Reads the numbers of an array; all of its bytes must exist. */
  void int32s(int count, RowBuffer out, int to) {
    long from = Platform.BYTE_ARRAY_OFFSET + pos;
    pos += 4 * count;
    byte[] bytes = out.bytes;
    long next = Platform.BYTE_ARRAY_OFFSET + to;
    for (int index = 0; index < count; index++) {
      int found = Platform.getInt(data, from + 4L * index);
      Platform.putInt(bytes, next + 4L * index, IS_BIG_ENDIAN ? found : Integer.reverseBytes(found));
    }
  }

  /**
   * Reads sixteen bytes and writes them as Kafka's text form: 22 characters of URL-safe base64. Returns their position
   * in {@code out}.
   */
  int uuid(RowBuffer out) {
    need(16);
    long high = int64();
    long low = int64();
    int text = out.space(UUID_TEXT);
    long to = Platform.BYTE_ARRAY_OFFSET + text;
    for (int shift = 52; shift > 0; shift -= 12, to += 2) {
      two(high >>> shift, out, to);
    }
    two(high << 8 | low >>> 56, out, to);
    to += 2;
    for (int shift = 44; shift > 0; shift -= 12, to += 2) {
      two(low >>> shift, out, to);
    }
    two(low << 4, out, to);
    return text;
  }

  private static void two(long bits, RowBuffer out, long to) {
    Platform.putShort(out.bytes, to, TWO_CHARACTERS[(int) bits & 0xFFF]);
  }

  /** Reads one to five bytes of seven bits each, lowest first: 0 to 2^32-1. */
  long uvarint() {
    int first = pos;
    if (first < end && data[first] >= 0) {
      pos = first + 1;
      return data[first];
    }
    long value = 0;
    int at = first;
    for (int shift = 0; ; shift += 7) {
      if (shift == 35) {
        throw failure("InvalidVarint", first, "has a varint of more than 5 bytes");
      }
      if (at >= end) {
        throw underflow(at - first + 1, first);
      }
      byte next = data[at++];
      value |= (long) (next & 0x7F) << shift;
      if (next >= 0) {
        break;
      }
    }
    if (value >> 32 != 0) {
      concede("varint_bits");
      value &= 0xFFFFFFFFL;
    }
    pos = at;
    return value;
  }

  /** Reads a length or count, -1 for null. */
  int length(Head head) {
    int found;
    switch (head) {
      case INT16:
        found = int16();
        break;
      case INT32:
        found = int32();
        break;
      default:
        return compactLength();
    }
    return checked(found);
  }

  /** Reads a length or count as a varint with the number plus one; -1 for null. */
  int compactLength() {
    // The largest varint means 2^32-2, which is negative in Java and in Kafka.
    return checked((int) (uvarint() - 1));
  }

  private int checked(int length) {
    if (length < -1) {
      concede("negative_length");
      return -1;
    }
    return length;
  }

  /** Reads bytes unchanged. */
  byte[] bytes(long length) {
    if (length > end - pos) {
      throw underflow(length, pos);
    }
    int from = pos;
    pos += (int) length;
    return Arrays.copyOfRange(data, from, pos);
  }

  /** Appends bytes unchanged. Returns their number. */
  int raw(int length, RowBuffer out) {
    if (length > end - pos) {
      throw underflow(length, pos);
    }
    out.append(data, pos, length);
    pos += length;
    return length;
  }

  /** Appends a string. Returns its length in UTF-8. */
  int text(int length, RowBuffer out) {
    if (length > MAX_STRING) {
      throw failure("StringTooLong", pos, "is a string of " + length + " bytes, more than the limit of 32767");
    }
    if (length > end - pos) {
      throw underflow(length, pos);
    }
    int from = pos;
    pos = from + length;
    boolean isShort = length <= SHORT_TEXT && pos >= 8 && !IS_BIG_ENDIAN;
    if (isShort ? shortText(from, length, out) : isAscii(from, pos) || isUtf8(from, length)) {
      if (!isShort) {
        out.append(data, from, length);
      }
      return length;
    }
    concede("invalid_utf8");
    byte[] replaced = new String(data, from, length, StandardCharsets.UTF_8).getBytes(StandardCharsets.UTF_8);
    out.append(replaced, 0, replaced.length);
    return replaced.length;
  }

  /**
   * Appends a short string word by word. The bytes after its last complete word are copied as part of the word that
   * ends with them. Returns false, and appends nothing, if the string is not UTF-8.
   */
  private boolean shortText(int from, int length, RowBuffer out) {
    int start = out.room(length);
    byte[] bytes = out.bytes;
    long to = Platform.BYTE_ARRAY_OFFSET + start;
    long at = Platform.BYTE_ARRAY_OFFSET + from;
    long last = at + (length & ~7);
    long bits = 0;
    for (; at < last; at += 8, to += 8) {
      long word = Platform.getLong(data, at);
      bits |= word;
      Platform.putLong(bytes, to, word);
    }
    int rest = length & 7;
    if (rest > 0) {
      long word = Platform.getLong(data, at + rest - 8) >>> 64 - 8 * rest;
      bits |= word;
      Platform.putLong(bytes, to, word);
    }
    if ((bits & NOT_ASCII) == 0 || isUtf8(from, length)) {
      return true;
    }
    out.size = start;
    return false;
  }

  private boolean isAscii(int from, int to) {
    long bits = 0;
    int at = from;
    for (; at + 8 <= to; at += 8) {
      bits |= Platform.getLong(data, Platform.BYTE_ARRAY_OFFSET + at);
    }
    for (; at < to; at++) {
      bits |= data[at];
    }
    return (bits & NOT_ASCII) == 0;
  }

  private boolean isUtf8(int from, int length) {
    try {
      StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(data, from, length));
      return true;
    } catch (CharacterCodingException invalid) {
      return false;
    }
  }
}
