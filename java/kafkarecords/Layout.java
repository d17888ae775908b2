package kafkarecords;

import java.util.Arrays;
import java.util.List;

/** The layout of a struct, or the body of a message, in one version, and the row that it becomes. */
final class Layout {
  final Struct struct;
  /**
   * The number of fields in the row: one per field of the struct, and one for unknown tagged fields if they are kept.
   */
  final int fields;
  /** By slot: the layout of the field if it is before the tagged ones; otherwise null. */
  final Value[] body;
  /** By slot: the value in the row if the bytes do not contain the field. Null for untagged fields of the version. */
  final Fallback[] fallbacks;
  /** By slot: whether the row contains an offset and a size. */
  final boolean[] isVariable;
  /** The initial content of a row: bits and fields, with the fixed-width defaults of fields that the bytes may lack. */
  final long[] blank;
  /** The number of bytes in the row before its fields. */
  final int bits;
  /** The slots that are filled from the body, and the layouts of their fields; null for a default. */
  final int[] steps;
  final Value[] values;
  /** The slots of tagged fields whose default has no fixed width. */
  final int[] absent;
  /** Whether tagged fields may be in another order than in the row. */
  final boolean mayMix;
  final boolean isFlexible;
  /** The fields that may be tagged: their tags, their slots, their values. */
  final int[] tags;
  final int[] tagSlots;
  final Value[] tagValues;
  /** The tags of fields that are missing or untagged in this version, and their slots. */
  final int[] misplacedTags;
  final int[] misplacedSlots;
  final boolean keepsTags;
  /** Whether the row has fields for the contents of tagged fields. */
  final boolean hasTags;
  final int smallest;

  Layout(
      Struct struct,
      Value[] body,
      Fallback[] fallbacks,
      boolean[] isVariable,
      boolean isFlexible,
      boolean keepsTags,
      List<int[]> tagged,
      List<Value> tagValues,
      List<int[]> misplaced) {
    this.struct = struct;
    this.body = body;
    this.fallbacks = fallbacks;
    this.isVariable = isVariable;
    this.isFlexible = isFlexible;
    this.keepsTags = keepsTags;
    this.tagValues = tagValues.toArray(new Value[0]);
    fields = isVariable.length;
    tags = column(tagged, 0);
    tagSlots = column(tagged, 1);
    hasTags = keepsTags || tags.length > 0;
    misplacedTags = column(misplaced, 0);
    misplacedSlots = column(misplaced, 1);
    int fewest = isFlexible ? 1 : 0;
    for (Value value : body) {
      fewest += value == null ? 0 : value.smallest;
    }
    smallest = fewest;
    blank = blank();
    bits = RowBuffer.bits(fields);
    steps = steps();
    values = new Value[steps.length];
    for (int step = 0; step < steps.length; step++) {
      values[step] = body[steps[step]];
    }
    absent = absent();
    mayMix = mayMix();
  }

  private long[] blank() {
    RowBuffer out = new RowBuffer();
    int row = out.row(fields);
    for (int slot = 0; slot < body.length; slot++) {
      if (body[slot] == null && fallbacks[slot].content == null) {
        fallbacks[slot].write(out, row, slot, fields);
      }
    }
    long[] words = new long[out.size / 8];
    for (int at = 0; at < words.length; at++) {
      words[at] = out.long64(8 * at);
    }
    return words;
  }

  private int[] steps() {
    int[] found = new int[body.length];
    int count = 0;
    for (int slot = 0; slot < body.length; slot++) {
      if (body[slot] != null || !isTagged(slot) && fallbacks[slot].content != null) {
        found[count++] = slot;
      }
    }
    return Arrays.copyOf(found, count);
  }

  private int[] absent() {
    int[] found = new int[tagSlots.length];
    int count = 0;
    for (int slot : tagSlots) {
      if (fallbacks[slot].content != null) {
        found[count++] = slot;
      }
    }
    return Arrays.copyOf(found, count);
  }

  private boolean mayMix() {
    int last = -1;
    for (int slot : steps) {
      last = isVariable[slot] ? slot : last;
    }
    int count = 0;
    boolean isBefore = false;
    for (int slot : tagSlots) {
      count += isVariable[slot] ? 1 : 0;
      isBefore |= isVariable[slot] && slot < last;
    }
    return count > 1 || isBefore;
  }

  private static int[] column(List<int[]> rows, int at) {
    int[] found = new int[rows.size()];
    for (int row = 0; row < found.length; row++) {
      found[row] = rows.get(row)[at];
    }
    return found;
  }

  /** Whether a field is a tagged one, which is read and written after the others. */
  boolean isTagged(int slot) {
    for (int each : tagSlots) {
      if (each == slot) {
        return true;
      }
    }
    return false;
  }

  String name(int slot) {
    return struct.fields.get(slot).name;
  }
}
