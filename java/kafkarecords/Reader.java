package kafkarecords;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Reads messages into rows, as leniently as Kafka's own classes.
 *
 * <p>The order of reading, and what is accepted or rejected, are the same as in kafka_records_runtime.wire.readers.
 * Paths cost nothing as long as there is no error: a failure collects its path on the way up.
 */
final class Reader {
  private static final int SMALLEST_TAG = 2;
  private static final long MAX_TAG = Integer.MAX_VALUE - 1;
  private static final byte THERE = 1;
  private static final byte HOLDS_UNKNOWN = 2;
  private static final String TAG_SECTION = "tagged_fields";

  private Reader() {}

  /** Reads a struct, or the body of a message, into a row that begins at the end of {@code out}. */
  static int struct(Layout layout, Cursor cursor, RowBuffer out) {
    int row = out.append(layout.blank);
    int first = row + layout.bits;
    int[] steps = layout.steps;
    Value[] values = layout.values;
    int step = 0;
    try {
      for (; step < steps.length; step++) {
        int slot = steps[step];
        Value value = values[step];
        if (value == null) {
          layout.fallbacks[slot].write(out, row, slot, layout.fields);
        } else if (!value(value, cursor, out, row, first + 8 * slot)) {
          out.setNull(row, slot);
        }
      }
    } catch (ReadFailure failure) {
      throw failure.inside(layout.name(steps[step]));
    }
    if (!layout.isFlexible) {
      if (layout.keepsTags) {
        Fallback.nothing(out, row, layout.body.length, layout.fields);
      }
    } else if (cursor.pos < cursor.end && cursor.data[cursor.pos] == 0) {
      cursor.pos++;
      noTags(layout, out, row);
    } else {
      tags(layout, cursor, out, row);
    }
    return row;
  }

  /**
   * Reads a value into the field at {@code at} of the row or array that begins at {@code row}.
   *
   * @return whether it is not null
   */
  private static boolean value(Value value, Cursor cursor, RowBuffer out, int row, int at) {
    switch (value.code) {
      case Value.BOOL:
        out.putByte(at, (byte) (cursor.int8() == 0 ? 0 : 1));
        return true;
      case Value.INT8:
        out.putByte(at, cursor.int8());
        return true;
      case Value.INT16:
        out.putShort(at, cursor.int16());
        return true;
      case Value.UINT16:
        out.putInt(at, cursor.int16() & 0xFFFF);
        return true;
      case Value.INT32:
        out.putInt(at, cursor.int32());
        return true;
      case Value.UINT32:
        out.putLong(at, cursor.int32() & 0xFFFFFFFFL);
        return true;
      case Value.INT64:
      case Value.FLOAT64:
        out.putLong(at, cursor.int64());
        return true;
      case Value.UUID:
        out.link(at, row, cursor.uuid(out), Cursor.UUID_TEXT);
        return true;
      case Value.STRUCT:
        if (value.head != Head.NONE && !isPresent(value.head, cursor)) {
          return false;
        }
        int inner = struct(value.layout, cursor, out);
        out.link(at, row, inner, out.size - inner);
        return true;
      default:
        return sized(value, cursor, out, row, at);
    }
  }

  /** Reads a value with a length or count before it: a string, bytes or an array. */
  private static boolean sized(Value value, Cursor cursor, RowBuffer out, int row, int at) {
    int start = cursor.pos;
    int length = value.isCompact ? cursor.compactLength() : cursor.length(value.head);
    if (length < 0) {
      if (!value.nullable) {
        throw cursor.failure("UnexpectedNull", start, "is null, which this version does not allow");
      }
      return false;
    }
    int from = out.size;
    if (value.code == Value.STRING) {
      out.link(at, row, from, cursor.text(length, out));
    } else if (value.code == Value.BYTES) {
      out.link(at, row, from, cursor.raw(length, out));
    } else {
      array(value.element, cursor, start, length, out);
      out.link(at, row, from, out.size - from);
    }
    return true;
  }

  private static boolean isPresent(Head marker, Cursor cursor) {
    int none = marker == Head.INT8 ? -1 : 0;
    int mark = marker == Head.INT8 ? cursor.int8() : (int) cursor.uvarint();
    if (mark != none && mark != 1) {
      cursor.concede("struct_marker");
    }
    return mark > none;
  }

  /** Writes a number, given as its bits, with the width of its column type. */
  static void number(Value.Type type, long value, RowBuffer out, int at) {
    switch (type.width) {
      case 1:
        out.putByte(at, (byte) value);
        break;
      case 2:
        out.putShort(at, (short) value);
        break;
      case 4:
        out.putInt(at, (int) value);
        break;
      default:
        out.putLong(at, value);
    }
  }

  // -- arrays ---------------------------------------------------------------------------------------------------------

  private static void array(Value element, Cursor cursor, int start, int count, RowBuffer out) {
    int limit;
    if (element.smallest > 0) {
      limit = cursor.left() / element.smallest;
    } else {
      limit = Math.min(cursor.left(), cursor.spare);
      cursor.spare -= count;
    }
    if (count > limit) {
      throw tooMany(cursor, start, count, limit);
    }
    int width = element.type.width;
    int array = out.array(count, width);
    int at = array + RowBuffer.elements(count);
    if (element.code == Value.INT32) {
      cursor.int32s(count, out, at);
      return;
    }
    int index = 0;
    try {
      for (; index < count; index++, at += width) {
        if (!value(element, cursor, out, array, at)) {
          out.setNull(array + 8, index); // the null bits follow the count
        }
      }
    } catch (ReadFailure failure) {
      throw failure.inside("[" + index + "]");
    }
  }

  private static ReadFailure tooMany(Cursor cursor, int start, long count, int limit) {
    String claimed = Cursor.plural(count, "element");
    return cursor.failure(
        "CountTooLarge", start, "claims " + claimed + ", but the remaining bytes hold at most " + limit);
  }

  // -- tagged fields --------------------------------------------------------------------------------------------------

  private static void noTags(Layout layout, RowBuffer out, int row) {
    for (int slot : layout.absent) {
      layout.fallbacks[slot].write(out, row, slot, layout.fields);
    }
    if (layout.keepsTags) {
      Fallback.nothing(out, row, layout.body.length, layout.fields);
    }
    if (layout.mayMix && !out.isInOrder(row, layout.fields, layout.isVariable)) {
      out.inOrder(row, layout.fields, layout.isVariable);
    }
  }

  private static void tags(Layout layout, Cursor cursor, RowBuffer out, int row) {
    List<byte[]> unknown = null;
    List<Integer> numbers = null;
    byte[] isThere = layout.tags.length == 0 ? null : new byte[layout.tags.length];
    boolean isRepeated = false;
    boolean heldUnknown = cursor.hasUnknownTags;
    int bits = layout.bits;
    String path = TAG_SECTION;
    try {
      int countAt = cursor.pos;
      long count = cursor.uvarint();
      int limit = cursor.left() / SMALLEST_TAG;
      if (count > Integer.MAX_VALUE) {
        cursor.concede("tag_count");
        count = 0;
      }
      if (count > limit) {
        throw tooMany(cursor, countAt, count, limit);
      }
      Set<Long> seen = count > 1 ? new HashSet<>() : null;
      long highest = -1;
      for (long left = count; left > 0; left--) {
        path = TAG_SECTION;
        int start = cursor.pos;
        long tag = cursor.uvarint();
        refuseMisplaced(layout, cursor, start, tag);
        if (tag > highest) {
          highest = tag;
        } else {
          cursor.concede(seen.contains(tag) ? "repeated_tag" : "tag_order");
        }
        if (seen != null) {
          seen.add(tag);
        }
        long size = cursor.uvarint();
        int known = place(layout.tags, tag);
        if (known >= 0) {
          int slot = layout.tagSlots[known];
          path = layout.name(slot);
          int payload = cursor.pos;
          isRepeated |= isThere[known] != 0;
          out.clear(row, slot, bits);
          cursor.hasUnknownTags = false;
          if (!value(layout.tagValues[known], cursor, out, row, row + bits + 8 * slot)) {
            out.setNull(row, slot);
          }
          isThere[known] = cursor.hasUnknownTags ? HOLDS_UNKNOWN : THERE; // if a tag is repeated, the last value counts
          if (cursor.pos - payload != size) {
            cursor.concede("tag_size");
          }
        } else {
          path = TAG_SECTION + "[" + tag + "]";
          if (tag > MAX_TAG) {
            cursor.concede("tag_number");
          }
          byte[] content = cursor.bytes(size);
          heldUnknown = true;
          if (layout.keepsTags) {
            unknown = unknown == null ? new ArrayList<>() : unknown;
            numbers = numbers == null ? new ArrayList<>() : numbers;
            unknown.add(content);
            numbers.add((int) tag);
          }
        }
      }
    } catch (ReadFailure failure) {
      throw failure.inside(path);
    }
    cursor.hasUnknownTags = heldUnknown;
    for (int known = 0; known < layout.tags.length; known++) {
      cursor.hasUnknownTags |= isThere[known] == HOLDS_UNKNOWN;
      int slot = layout.tagSlots[known];
      if (isThere[known] == 0 && layout.fallbacks[slot].content != null) {
        layout.fallbacks[slot].write(out, row, slot, layout.fields);
      }
    }
    if (layout.keepsTags) {
      unknown(unknown, numbers, out, row, layout.body.length, layout.fields);
    }
    if (isRepeated || layout.mayMix && !out.isInOrder(row, layout.fields, layout.isVariable)) {
      out.inOrder(row, layout.fields, layout.isVariable);
    }
  }

  /** Writes the unknown tagged fields: an array of (tag, bytes). */
  private static void unknown(
      List<byte[]> unknown, List<Integer> numbers, RowBuffer out, int row, int slot, int fields) {
    int count = unknown == null ? 0 : unknown.size();
    int array = out.array(count, 8);
    for (int index = 0; index < count; index++) {
      int pair = out.row(2);
      out.putInt(pair + 8, numbers.get(index));
      byte[] content = unknown.get(index);
      out.link(pair + 16, pair, out.append(content, 0, content.length), content.length);
      out.link(array + RowBuffer.elements(count) + 8 * index, array, pair, out.size - pair);
    }
    out.link(row + RowBuffer.bits(fields) + 8 * slot, row, array, out.size - array);
  }

  private static int place(int[] tags, long tag) {
    for (int at = 0; at < tags.length; at++) {
      if (tags[at] == tag) {
        return at;
      }
    }
    return -1;
  }

  private static void refuseMisplaced(Layout layout, Cursor cursor, int start, long tag) {
    int found = place(layout.misplacedTags, tag);
    if (found >= 0) {
      String name = layout.name(layout.misplacedSlots[found]);
      String detail = "has tag " + tag + ", but " + name + " is not tagged in this version";
      throw cursor.failure("InvalidTag", start, detail);
    }
  }
}
