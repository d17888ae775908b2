package kafkarecords;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Writes structs of one column type in one version of a message.
 *
 * <p>Whether the type fits is checked once, when the writer is created (UnsupportedOperationException). Which values
 * are rejected, and in which order, is the same as in kafka_records_runtime.wire.writers.
 */
final class Writer {
  private static final int MAX_STRING = 32767;
  private static final int MAX_TAG = Integer.MAX_VALUE - 1;
  private static final Pattern UUID = Pattern.compile("[A-Za-z0-9_-]{22}(?:==)?");

  private final Message message;
  private final int version;
  private final StructWriter root;

  Writer(Message message, int version, DataType type) {
    this.message = message;
    this.version = version;
    root = type instanceof NullType ? null : new StructWriter(message.layout(version, false), type, "");
  }

  /** Appends the message. Throws IllegalArgumentException for a value that the version cannot contain. */
  void write(InternalRow value, Output out) {
    try {
      root.write(value, out);
    } catch (WriteFailure failure) {
      throw failure.located(message, version);
    }
  }

  private UnsupportedOperationException wrong(String path, String detail) {
    return new UnsupportedOperationException(
        message.name + " v" + version + ": " + (path.isEmpty() ? "the message" : path) + " " + detail);
  }

  // -- structs --------------------------------------------------------------------------------------------------------

  /** Writes a struct: the positions of its fields in the column, and a writer for each. */
  private final class StructWriter {
    private final Layout layout;
    /** By slot: the position in the column (-1 for none), the type there, and the writer. */
    private final int[] ordinals;
    private final ValueWriter[] members;
    private int unknownOrdinal = -1;
    private DataType unknownType;

    StructWriter(Layout layout, DataType given, String path) {
      if (!(given instanceof StructType)) {
        throw wrong(path, "is of type " + given.simpleString() + ", expected struct");
      }
      this.layout = layout;
      List<Field> fields = layout.struct.fields;
      ordinals = new int[fields.size()];
      members = new ValueWriter[fields.size()];
      Arrays.fill(ordinals, -1);
      Map<String, Integer> slots = new HashMap<>();
      for (int slot = 0; slot < fields.size(); slot++) {
        slots.put(fields.get(slot).name, slot);
      }
      StructField[] columns = ((StructType) given).fields();
      for (int at = 0; at < columns.length; at++) {
        place(columns, at, slots, path);
      }
      for (int slot = 0; slot < ordinals.length; slot++) {
        if (ordinals[slot] < 0 && layout.body[slot] != null) {
          throw wrong(path, "lacks the field '" + fields.get(slot).name + "'");
        }
      }
    }

    private void place(StructField[] columns, int at, Map<String, Integer> slots, String path) {
      String name = columns[at].name();
      String inner = path.isEmpty() ? name : path + "." + name;
      int same = 0;
      for (StructField column : columns) {
        same += column.name().equals(name) ? 1 : 0;
      }
      if (same > 1) {
        throw wrong(inner, "is of type " + same + " fields of that name, expected one field");
      }
      if (name.equals(SparkTypes.UNKNOWN_TAGS)) {
        checkTags(columns[at].dataType(), inner);
        unknownOrdinal = at;
        unknownType = columns[at].dataType();
      } else if (!slots.containsKey(name)) {
        throw wrong(path, "has the key '" + name + "', which is not a field of it");
      } else {
        int slot = slots.get(name);
        ordinals[slot] = at;
        members[slot] = new ValueWriter(layout, slot, columns[at].dataType(), inner);
      }
    }

    private void checkTags(DataType type, String path) {
      boolean fits = type instanceof NullType;
      if (type instanceof ArrayType && ((ArrayType) type).elementType() instanceof StructType) {
        StructField[] pair = ((StructType) ((ArrayType) type).elementType()).fields();
        fits =
            pair.length == 2
                && pair[0].name().equals("tag")
                && pair[1].name().equals("data")
                && isInteger(pair[0].dataType())
                && pair[1].dataType() instanceof BinaryType;
      }
      if (!fits) {
        throw wrong(path, "is of type " + type.simpleString() + ", expected " + SparkTypes.TAGS.simpleString());
      }
    }

    void write(InternalRow row, Output out) {
      if (row == null) {
        throw WriteFailure.isNull();
      }
      int slot = 0;
      try {
        for (; slot < ordinals.length; slot++) {
          if (layout.body[slot] == null && !layout.isTagged(slot) && ordinals[slot] >= 0) {
            members[slot].checkAbsent(row, ordinals[slot]);
          }
        }
        for (slot = 0; slot < ordinals.length; slot++) {
          if (layout.body[slot] != null) {
            members[slot].write(row, ordinals[slot], out);
          }
        }
      } catch (WriteFailure failure) {
        throw failure.inside(layout.name(slot));
      }
      if (layout.isFlexible) {
        tags(row, out);
      } else if (unknownCount(row) > 0) {
        throw new WriteFailure("is not empty, but this version has no tagged fields")
            .inside(SparkTypes.UNKNOWN_TAGS);
      }
    }

    private int unknownCount(InternalRow row) {
      return hasUnknown(row) ? row.getArray(unknownOrdinal).numElements() : 0;
    }

    private boolean hasUnknown(InternalRow row) {
      return unknownOrdinal >= 0 && !(unknownType instanceof NullType) && !row.isNullAt(unknownOrdinal);
    }

    private void tags(InternalRow row, Output out) {
      List<Integer> numbers = new ArrayList<>();
      List<byte[]> contents = new ArrayList<>();
      if (hasUnknown(row)) {
        unknown(row.getArray(unknownOrdinal), numbers, contents);
      }
      for (int known = 0; known < layout.tags.length; known++) {
        int slot = layout.tagSlots[known];
        if (ordinals[slot] < 0) {
          continue; // it has its default, which is not written
        }
        Output payload = new Output();
        try {
          members[slot].write(row, ordinals[slot], payload);
        } catch (WriteFailure failure) {
          throw failure.inside(layout.name(slot));
        }
        if (!members[slot].isDefault(row, ordinals[slot])) {
          int at = 0;
          while (at < numbers.size() && numbers.get(at) < layout.tags[known]) {
            at++;
          }
          numbers.add(at, layout.tags[known]);
          contents.add(at, payload.copy());
        }
      }
      out.uvarint(numbers.size());
      for (int at = 0; at < numbers.size(); at++) {
        out.uvarint(numbers.get(at));
        out.uvarint(contents.get(at).length);
        out.raw(contents.get(at));
      }
    }

    private void unknown(ArrayData pairs, List<Integer> numbers, List<byte[]> contents) {
      DataType ofTag = ((StructType) ((ArrayType) unknownType).elementType()).fields()[0].dataType();
      long previous = -1;
      int at = 0;
      try {
        for (; at < pairs.numElements(); at++) {
          InternalRow pair = pairs.isNullAt(at) ? null : pairs.getStruct(at, 2);
          if (pair == null || pair.isNullAt(0)) {
            throw WriteFailure.isNull();
          }
          long tag = ((Number) pair.get(0, ofTag)).longValue();
          if (tag < 0 || tag > MAX_TAG) {
            throw new WriteFailure("is " + tag + ", but a tag holds 0 to " + MAX_TAG);
          }
          for (Field field : layout.struct.fields) {
            if (field.tag == tag) {
              throw new WriteFailure("has tag " + tag + ", which belongs to " + field.name);
            }
          }
          if (tag <= previous) {
            throw new WriteFailure(
                "has tag " + tag + " after tag " + previous + ", but tags must ascend without repeats");
          }
          previous = tag;
          if (pair.isNullAt(1)) {
            throw WriteFailure.isNull();
          }
          numbers.add((int) tag);
          contents.add(pair.getBinary(1));
        }
      } catch (WriteFailure failure) {
        throw failure.inside("[" + at + "]").inside(SparkTypes.UNKNOWN_TAGS);
      }
    }

    /** Whether every member has its default. */
    boolean isDefault(InternalRow row) {
      if (unknownCount(row) > 0) {
        return false;
      }
      for (int slot = 0; slot < ordinals.length; slot++) {
        if (ordinals[slot] >= 0 && !members[slot].isDefault(row, ordinals[slot])) {
          return false;
        }
      }
      return true;
    }
  }

  // -- values ---------------------------------------------------------------------------------------------------------

  /** Writes a field: its type in the column, and how it is written. */
  private final class ValueWriter {
    private final Field field;
    /** The layout; null in a version without the field. */
    private final Value value;
    private final DataType type;
    private final DataType elementType;
    /** The writer of the struct, or of the elements of an array of structs. */
    private final StructWriter struct;
    private final Value.Type base;

    ValueWriter(Layout layout, int slot, DataType given, String path) {
      field = layout.struct.fields.get(slot);
      value = valueOf(layout, slot);
      type = given;
      base = Value.Type.of(field.base);
      if (given instanceof NullType) {
        elementType = given;
        struct = null;
        return;
      }
      if (field.isArray && !(given instanceof ArrayType)) {
        throw wrong(path, "is of type " + given.simpleString() + ", expected array");
      }
      elementType = field.isArray ? ((ArrayType) given).elementType() : given;
      String inner = field.isArray ? path + "[]" : path;
      if (base != null) {
        struct = null;
        if (!(elementType instanceof NullType) && !fits(base, elementType)) {
          String wanted = SparkTypes.primitive(field.base).simpleString();
          throw wrong(inner, "is of type " + elementType.simpleString() + ", expected " + wanted);
        }
      } else if (elementType instanceof NullType) {
        struct = null;
      } else {
        Layout ofStruct = new Layouts(message, version, false).of(message.struct(field));
        struct = new StructWriter(ofStruct, elementType, inner);
      }
    }

    private Value valueOf(Layout layout, int slot) {
      for (int known = 0; known < layout.tagSlots.length; known++) {
        if (layout.tagSlots[known] == slot) {
          return layout.tagValues[known];
        }
      }
      return layout.body[slot];
    }

    void checkAbsent(SpecializedGetters row, int ordinal) {
      if (!field.ignorable && !isDefault(row, ordinal)) {
        throw new WriteFailure("is set, but this version has no such field");
      }
    }

    boolean isDefault(SpecializedGetters row, int ordinal) {
      if (type instanceof NullType || row.isNullAt(ordinal)) {
        return field.defaultsToNull();
      }
      if (field.defaultsToNull()) {
        return false;
      }
      if (field.isArray) {
        return row.getArray(ordinal).numElements() == 0;
      }
      if (struct != null) {
        return struct.isDefault(row.getStruct(ordinal, ((StructType) type).size()));
      }
      return isDefault(row.get(ordinal, type));
    }

    private boolean isDefault(Object held) {
      String text = field.fallback.isEmpty() ? "" : field.fallback.substring(1);
      switch (base) {
        case BOOL:
          return (Boolean) held == text.equals("True");
        case STRING:
          return held.toString().equals(text);
        case UUID:
          String zero = "AAAAAAAAAAAAAAAAAAAAAA";
          return Arrays.equals(uuid(held.toString()), uuid(text.isEmpty() ? zero : text));
        case BYTES:
          return ((byte[]) held).length == 0;
        case FLOAT64:
          return ((Number) held).doubleValue() == (text.isEmpty() ? 0.0 : Fallback.number(text));
        default:
          return ((Number) held).longValue() == (text.isEmpty() ? 0 : Long.parseLong(text));
      }
    }

    void write(SpecializedGetters row, int ordinal, Output out) {
      boolean isNull = type instanceof NullType || row.isNullAt(ordinal);
      if (value.type == Value.Type.ARRAY) {
        if (isNull) {
          none(out);
        } else {
          array(row.getArray(ordinal), out);
        }
      } else {
        single(value, isNull, row, ordinal, out);
      }
    }

    private void none(Output out) {
      if (!value.nullable) {
        throw WriteFailure.isNull();
      }
      out.length(value.head, -1);
    }

    private void array(ArrayData items, Output out) {
      int count = items.numElements();
      out.length(value.head, count);
      int at = 0;
      try {
        for (; at < count; at++) {
          boolean isNull = elementType instanceof NullType || items.isNullAt(at);
          single(value.element, isNull, items, at, out);
        }
      } catch (WriteFailure failure) {
        throw failure.inside("[" + at + "]");
      }
    }

    private void single(Value one, boolean isNull, SpecializedGetters from, int ordinal, Output out) {
      if (one.type == Value.Type.STRUCT) {
        if (one.head != Head.NONE) {
          out.int8(isNull ? (one.head == Head.INT8 ? -1 : 0) : 1);
          if (isNull) {
            return;
          }
        } else if (isNull) {
          throw WriteFailure.isNull();
        }
        struct.write(from.getStruct(ordinal, ((StructType) elementType).size()), out);
      } else if (one.head != Head.NONE) {
        if (isNull) {
          if (!one.nullable) {
            throw WriteFailure.isNull();
          }
          out.length(one.head, -1);
          return;
        }
        byte[] content =
            one.type == Value.Type.STRING
                ? from.getUTF8String(ordinal).getBytes()
                : from.getBinary(ordinal);
        if (one.type == Value.Type.STRING && content.length > MAX_STRING) {
          throw new WriteFailure("takes " + content.length + " bytes of UTF-8, more than the limit of 32767");
        }
        out.length(one.head, content.length);
        out.raw(content);
      } else if (isNull) {
        throw WriteFailure.isNull();
      } else {
        fixed(one.type, from, ordinal, out);
      }
    }

    private void fixed(Value.Type kind, SpecializedGetters from, int ordinal, Output out) {
      switch (kind) {
        case BOOL:
          out.int8(from.getBoolean(ordinal) ? 1 : 0);
          break;
        case FLOAT64:
          out.number(Double.doubleToRawLongBits(((Number) from.get(ordinal, elementType)).doubleValue()), 8);
          break;
        case UUID:
          String text = from.getUTF8String(ordinal).toString();
          byte[] uuid = uuid(text);
          if (uuid == null) {
            throw new WriteFailure("is '" + text + "', but a uuid is 22 characters of URL-safe base64");
          }
          out.raw(uuid);
          break;
        default:
          long number = ((Number) from.get(ordinal, elementType)).longValue();
          if (number < lowest(kind) || number > highest(kind)) {
            String range = lowest(kind) + " to " + highest(kind);
            throw new WriteFailure("is " + number + ", but " + field.base + " holds " + range);
          }
          out.number(number, kind.size);
      }
    }
  }

  private static long lowest(Value.Type type) {
    return type == Value.Type.UINT16 || type == Value.Type.UINT32 ? 0 : -1L << 8 * type.size - 1;
  }

  private static long highest(Value.Type type) {
    switch (type) {
      case UINT16:
        return 0xFFFF;
      case UINT32:
        return 0xFFFFFFFFL;
      default:
        return ~lowest(type);
    }
  }

  /** The sixteen bytes of a uuid in Kafka's text form; null for any other text. */
  private static byte[] uuid(String text) {
    return UUID.matcher(text).matches()
        ? java.util.Base64.getUrlDecoder().decode(text.substring(0, 22))
        : null;
  }

  static boolean isInteger(DataType type) {
    return type instanceof ByteType
        || type instanceof ShortType
        || type instanceof IntegerType
        || type instanceof LongType;
  }

  private static boolean fits(Value.Type base, DataType type) {
    switch (base) {
      case BOOL:
        return type instanceof BooleanType;
      case FLOAT64:
        return isInteger(type) || type instanceof FloatType || type instanceof DoubleType;
      case UUID:
      case STRING:
        return type instanceof StringType;
      case BYTES:
        return type instanceof BinaryType;
      default:
        return isInteger(type);
    }
  }
}
