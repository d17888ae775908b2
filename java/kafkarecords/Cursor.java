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
 * The bytes of one message, how far they are read, and what was let pass on the way.
 *
 * <p>Everything is big-endian. A read method moves the cursor; it never moves it past {@code end} and never allocates
 * before it has compared a length with the bytes left. The rules, names and texts are those of
 * {@code kafka_records_runtime.wire}, reading as leniently as Kafka's own classes do.
 */
final class Cursor {
  private static final int MAX_STRING = 32767;
  private static final boolean IS_BIG_ENDIAN = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN;
  private static final byte[] URL_SAFE =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".getBytes(StandardCharsets.US_ASCII);
  /** Characters of a uuid as text. */
  static final int UUID_TEXT = 22;

  byte[] data;
  int end;
  /** Where the message begins; offsets in errors count from there. */
  int start;
  int pos;
  /** How many elements without bytes may still be read, so that no input takes more than linear time. */
  int spare;
  boolean hasUnknownTags;
  /** Names of leniencies, in the order of reading; null as long as there is none. */
  List<String> leniencies;

  /** Begins to read a message. */
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
    return failure("BufferUnderflow", at, "needs " + plural(needed, "byte") + ", " + (end - at) + " left");
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

  /** Sixteen bytes, as Kafka prints them: 22 characters of URL-safe base64. Returns where they are in {@code out}. */
  int uuid(RowBuffer out) {
    need(16);
    int text = out.space(UUID_TEXT);
    byte[] to = out.bytes;
    int next = text;
    int at = pos;
    pos = at + 16;
    for (; at < pos - 1; at += 3) {
      int bits = (data[at] & 0xFF) << 16 | (data[at + 1] & 0xFF) << 8 | data[at + 2] & 0xFF;
      to[next++] = URL_SAFE[bits >> 18];
      to[next++] = URL_SAFE[bits >> 12 & 63];
      to[next++] = URL_SAFE[bits >> 6 & 63];
      to[next++] = URL_SAFE[bits & 63];
    }
    int last = data[at] & 0xFF;
    to[next++] = URL_SAFE[last >> 2];
    to[next] = URL_SAFE[(last & 3) << 4];
    return text;
  }

  /** One to five bytes of seven bits each, lowest first: 0 to 2^32-1. */
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

  /** A length or count, -1 for null. */
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
        // The largest compact length stands for 2^32-2, which is negative to Java and to Kafka.
        found = (int) (uvarint() - 1);
    }
    if (found < -1) {
      concede("negative_length");
      return -1;
    }
    return found;
  }

  /** Bytes as they are. */
  byte[] bytes(long length) {
    if (length > end - pos) {
      throw underflow(length, pos);
    }
    int from = pos;
    pos += (int) length;
    return Arrays.copyOfRange(data, from, pos);
  }

  /** Appends bytes as they are; returns how many. */
  int raw(int length, RowBuffer out) {
    if (length > end - pos) {
      throw underflow(length, pos);
    }
    out.append(data, pos, length);
    pos += length;
    return length;
  }

  /** Appends a string; returns its length in UTF-8. */
  int text(int length, RowBuffer out) {
    if (length > MAX_STRING) {
      throw failure("StringTooLong", pos, "is a string of " + length + " bytes, 32767 is the limit");
    }
    if (length > end - pos) {
      throw underflow(length, pos);
    }
    int from = pos;
    pos = from + length;
    if (!isAscii(from, pos) && !isUtf8(from, length)) {
      concede("invalid_utf8");
      byte[] replaced = new String(data, from, length, StandardCharsets.UTF_8).getBytes(StandardCharsets.UTF_8);
      out.append(replaced, 0, replaced.length);
      return replaced.length;
    }
    out.append(data, from, length);
    return length;
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
    return (bits & 0x8080808080808080L) == 0;
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
