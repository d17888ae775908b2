package kafkarecords;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;

/** The default of a field as stored in a row: 8 bytes for a fixed width, or bytes at the end of the row. */
final class Fallback {
  final boolean isNull;
  /** The content; null for a value of fixed width. */
  final byte[] content;
  /** The content, with zeros up to the next multiple of 8. */
  private final long[] words;
  private final Value.Type type;
  private final long number;

  private Fallback(boolean isNull, Value.Type type, long number, byte[] content) {
    this.isNull = isNull;
    this.type = type;
    this.number = number;
    this.content = content;
    words = content == null ? null : words(content);
  }

  private static long[] words(byte[] content) {
    byte[] padded = Arrays.copyOf(content, content.length + 7 & ~7);
    long[] words = new long[padded.length / 8];
    for (int at = 0; at < words.length; at++) {
      words[at] = Platform.getLong(padded, Platform.BYTE_ARRAY_OFFSET + 8L * at);
    }
    return words;
  }

  static Fallback of(Message message, Field field, boolean keepsTags) {
    if (field.defaultsToNull()) {
      return new Fallback(true, null, 0, null);
    }
    if (field.isArray) {
      return new Fallback(false, null, 0, new byte[RowBuffer.elements(0)]);
    }
    Struct struct = message.struct(field);
    if (struct != null) {
      return new Fallback(false, null, 0, struct(message, struct, keepsTags));
    }
    Value.Type type = Value.Type.of(field.base);
    boolean natural = field.fallback.isEmpty();
    String text = natural ? "" : field.fallback.substring(1);
    switch (type) {
      case STRING:
        return new Fallback(false, type, 0, text.getBytes(StandardCharsets.UTF_8));
      case UUID:
        String uuid = natural ? "AAAAAAAAAAAAAAAAAAAAAA" : text;
        return new Fallback(false, type, 0, uuid.getBytes(StandardCharsets.US_ASCII));
      case BYTES:
        return new Fallback(false, type, 0, new byte[0]);
      case BOOL:
        return new Fallback(false, type, text.equals("True") ? 1 : 0, null);
      case FLOAT64:
        return new Fallback(false, type, Double.doubleToRawLongBits(natural ? 0.0 : number(text)), null);
      default:
        return new Fallback(false, type, natural ? 0 : Long.parseLong(text), null);
    }
  }

  private static byte[] struct(Message message, Struct struct, boolean keepsTags) {
    RowBuffer buffer = new RowBuffer();
    int count = struct.fields.size();
    int fields = keepsTags ? count + 1 : count;
    int row = buffer.row(fields);
    for (int slot = 0; slot < count; slot++) {
      of(message, struct.fields.get(slot), keepsTags).write(buffer, row, slot, fields);
    }
    if (keepsTags) {
      nothing(buffer, row, count, fields);
    }
    return Arrays.copyOf(buffer.bytes, buffer.size);
  }

  /** Writes an array without elements. */
  static void nothing(RowBuffer out, int row, int slot, int fields) {
    int array = out.array(0, 8);
    out.link(row + RowBuffer.bits(fields) + 8 * slot, row, array, out.size - array);
  }

  void write(RowBuffer out, int row, int slot, int fields) {
    int at = row + RowBuffer.bits(fields) + 8 * slot;
    if (isNull) {
      out.setNull(row, slot);
    } else if (content != null) {
      out.link(at, row, out.append(words), content.length);
    } else {
      Reader.number(type, number, out, at);
    }
  }

  static double number(String text) {
    switch (text) {
      case "inf":
        return Double.POSITIVE_INFINITY;
      case "-inf":
        return Double.NEGATIVE_INFINITY;
      case "nan":
        return Double.NaN;
      default:
        return Double.parseDouble(text);
    }
  }
}
