package kafkarecords;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code decode_<topic>}: key and value of a record of any type into what decode_records gives beside the coordinates.
 *
 * <p>The columns and their contents are those of kafka_records_engine.spark.decode.
 */
public final class DecodeRecords extends Function<InternalRow> {
  private static final StructType ERROR =
      new StructType()
          .add("reason", DataTypes.StringType)
          .add("record_type", DataTypes.ShortType)
          .add("version", DataTypes.ShortType)
          .add("path", DataTypes.StringType)
          .add("byte_offset", DataTypes.IntegerType)
          .add("message", DataTypes.StringType);
  private static final StructType HEAD =
      new StructType()
          .add("record_type", DataTypes.ShortType)
          .add("value_version", DataTypes.ShortType)
          .add("is_tombstone", DataTypes.BooleanType)
          .add("key_bytes_left", DataTypes.IntegerType)
          .add("value_bytes_left", DataTypes.IntegerType)
          .add("has_unknown_tags", DataTypes.BooleanType)
          .add("leniencies", DataTypes.createArrayType(DataTypes.StringType, true))
          .add("error", ERROR)
          .add("raw_key", DataTypes.BinaryType)
          .add("raw_value", DataTypes.BinaryType);
  private static final int WIDTH = HEAD.size();
  private static final int NO_VERSION = Integer.MIN_VALUE;
  private static final int KEY_LEFT = HEAD.fieldIndex("key_bytes_left");
  private static final int LENIENCIES = HEAD.fieldIndex("leniencies");

  private final String topic;
  private final boolean isFailfast;
  private final boolean keepsTags;
  private final String[] chosen;
  /** The topic whose records these are, where somebody has named it. */
  private final String expected;
  private transient Framing framing;
  private transient Record[] records;
  private transient RowBuffer out;
  private transient LastCall last;
  /** What the last call has returned. */
  private transient InternalRow found;
  private transient Cursor keyCursor;
  private transient Cursor valueCursor;
  /** Which columns have no fixed width. */
  private transient boolean[] isVariable;
  /** Record type → its place in {@code records}, -1 for types without a column. */
  private transient int[] places;

  DecodeRecords(Asked asked, String topic, DataType[] inputs) {
    super(asked, result(asked, topic), inputs);
    this.topic = topic;
    isFailfast = asked.isFailfast();
    keepsTags = asked.flag("unknown_tags", false);
    chosen = asked.names("records");
    expected = asked.text("topic");
  }

  private static StructType result(Asked asked, String topic) {
    asked.allowOnly(Arrays.asList("mode", "unknown_tags", "records", "comments", "topic"));
    StructType type = HEAD;
    for (Record record : chosen(asked, topic)) {
      StructType struct = SparkTypes.of(record, asked.flag("unknown_tags", false), asked.flag("comments", false));
      type = type.add(record.column, struct, true);
    }
    return type;
  }

  private static List<Record> chosen(Asked asked, String topic) {
    List<Record> all = asked.read().topics.get(topic);
    String[] names = asked.names("records");
    if (names == null) {
      return all;
    }
    List<Record> found = new ArrayList<>();
    for (String name : names) {
      found.add(called(asked, all, name));
    }
    return found;
  }

  private static Record called(Asked asked, List<Record> all, String name) {
    List<String> known = new ArrayList<>();
    for (Record record : all) {
      if (record.name.equals(name) || record.column.equals(name)) {
        return record;
      }
      known.add(record.name);
    }
    throw asked.wrong("no record is called " + name + "; the records are " + String.join(", ", known));
  }

  /** Where nothing can be read of a record, its columns are null; only of types that were not chosen there is no row. */
  @Override
  public boolean isResultNullable() {
    return chosen != null;
  }

  // -- rows -----------------------------------------------------------------------------------------------------------

  /**
   * Appends the row of a record; {@code isControl}: of a marker, which is no record of a coordinator; {@code isOther}:
   * of another topic, whose records have other types.
   */
  private int row(byte[] key, byte[] value, boolean isControl, boolean isOther) {
    int fields = WIDTH + records.length;
    int row = out.row(fields);
    int at = row + RowBuffer.bits(fields);
    if (isControl && !isOther) {
      control(row, at, fields);
    } else {
      record(key, value, isOther, row, at, fields);
    }
    return row;
  }

  private InternalRow decoded(byte[] key, byte[] value, boolean isControl, boolean isOther) {
    if (records == null) {
      prepare();
    }
    int flags = (isControl ? 1 : 0) | (isOther ? 2 : 0);
    if (!last.was(key, value, flags)) {
      last.forget();
      boolean isLeftOut = chosen != null && isLeftOut(key, value, isControl);
      found = isLeftOut ? null : out.emptied().row(row(key, value, isControl, isOther), WIDTH + records.length);
      last.keep(key, value, flags);
    }
    return found;
  }

  /** Whether a record is of a type that was not chosen: SQL may give rows of any type. */
  private boolean isLeftOut(byte[] key, byte[] value, boolean isControl) {
    int type = isControl ? Framing.NONE : framing.type(key, value);
    return isControl || type != Framing.NONE && place(type) < 0;
  }

  private int place(int type) {
    return type >= 0 && type < places.length ? places[type] : -1;
  }

  static IllegalArgumentException located(Undecodable error, UTF8String log, int partition, long offset) {
    String place =
        (log == null ? "None" : log.toString())
            + "-" + (partition == Integer.MIN_VALUE ? "None" : partition)
            + " offset " + (offset == Long.MIN_VALUE ? "None" : offset);
    return error.thrown(place + ": ");
  }

  public InternalRow invoke(byte[] key, byte[] value) {
    return invoke(key, value, false, false);
  }

  public InternalRow invoke(byte[] key, byte[] value, boolean isControl, boolean isOther) {
    try {
      return decoded(key, value, isControl, isOther);
    } catch (Undecodable error) {
      throw error.thrown("");
    }
  }

  /** For FAILFAST, whose errors say where the record is. */
  public InternalRow invoke(
      byte[] key,
      byte[] value,
      boolean isControl,
      boolean isOther,
      UTF8String log,
      int partition,
      long offset) {
    try {
      return decoded(key, value, isControl, isOther);
    } catch (Undecodable error) {
      throw located(error, log, partition, offset);
    }
  }

  private void control(int row, int at, int fields) {
    for (int slot = 0; slot < fields; slot++) {
      if (slot == LENIENCIES) {
        names(row, at, null, null);
      } else if (slot < KEY_LEFT || slot > LENIENCIES) {
        out.setNull(row, slot);
      }
    }
  }

  /**
   * The columns of a record. Key and value come first, because what the columns before them hold is known only then; for
   * nearly every record these are empty, and else everything is brought into the order of the columns.
   */
  private void record(byte[] key, byte[] value, boolean isOther, int row, int at, int fields) {
    Undecodable error = null;
    Cursor ofKey = null;
    Cursor ofValue = null;
    int place = -1;
    int type = isOther ? Framing.NONE : framing.type(key, value);
    boolean hasKey = false;
    boolean hasValue = false;
    if (type != Framing.NONE) {
      out.putShort(at, (short) type);
      place = place(type);
      if (place < 0 && chosen == null) {
        error = framing.unknownType(value);
      }
    } else {
      out.setNull(row, 0);
      error = isOther ? Undecodable.otherTopic(expected) : framing.unframed(key, value);
    }
    int version = NO_VERSION;
    int empty = out.array(0, 8);
    out.link(at + 8 * LENIENCIES, row, empty, out.size - empty);
    int head = out.size;
    if (place >= 0) {
      Record record = records[place];
      int parts = record.key == null ? 1 : 2;
      int pair = out.row(parts);
      try {
        if (record.key != null) {
          ofKey = keyCursor.at(key, Framing.PREFIX);
          int from = FromMessage.message(record.key, 0, keepsTags, ofKey, out);
          out.link(pair + 8, pair, from, out.size - from);
          hasKey = true;
        }
        if (value != null) {
          long found = framing.version(value);
          version = Framing.number(found);
          ofValue = valueCursor.at(value, Framing.at(found));
          int from = out.size;
          FromMessage.message(record.value, version, keepsTags, ofValue, out);
          out.link(pair + 8 * parts, pair, from, out.size - from);
          hasValue = true;
        }
      } catch (Undecodable met) {
        error = met;
        // The row does not have what could not be read to its end.
        out.size = hasKey ? pair + RowBuffer.fixed(parts) + (int) out.long64(pair + 8) : head;
      }
      if (hasKey || hasValue) {
        if (!hasValue) {
          out.setNull(pair, parts - 1);
        }
        out.link(at + 8 * (WIDTH + place), row, pair, out.size - pair);
      }
    }
    if (error != null && isFailfast) {
      throw error;
    }
    if (version == NO_VERSION) {
      out.setNull(row, 1);
    } else {
      out.putShort(at + 8, (short) version);
    }
    out.putByte(at + 8 * 2, (byte) (value == null ? 1 : 0));
    int keyLeft = hasKey ? ofKey.left() : 0;
    int valueLeft = hasValue ? ofValue.left() : 0;
    out.putInt(at + 8 * KEY_LEFT, keyLeft);
    out.putInt(at + 8 * (KEY_LEFT + 1), valueLeft);
    boolean hasTags = hasKey && ofKey.hasUnknownTags || hasValue && ofValue.hasUnknownTags;
    out.putByte(at + 8 * (LENIENCIES - 1), (byte) (hasTags ? 1 : 0));
    for (int slot = WIDTH; slot < fields; slot++) {
      if (slot != WIDTH + place || !hasKey && !hasValue) {
        out.setNull(row, slot);
      }
    }
    boolean isLenient = ofKey != null && ofKey.leniencies != null || ofValue != null && ofValue.leniencies != null;
    if (isLenient) {
      names(row, at, ofKey, ofValue);
    }
    error(error, row, at);
    boolean keepsBytes =
        place < 0 || error != null || isLenient || hasTags && !keepsTags || keyLeft != 0 || valueLeft != 0;
    binary(keepsBytes ? key : null, row, at, LENIENCIES + 2);
    binary(keepsBytes ? value : null, row, at, LENIENCIES + 3);
    if (keepsBytes) {
      out.inOrder(row, fields, isVariable);
    }
  }

  /** Writes the names of leniencies, those of the key first. */
  private void names(int row, int at, Cursor ofKey, Cursor ofValue) {
    List<byte[]> texts = new ArrayList<>();
    for (Cursor cursor : new Cursor[] {ofKey, ofValue}) {
      if (cursor != null && cursor.leniencies != null) {
        for (String name : cursor.leniencies) {
          texts.add(utf8(name));
        }
      }
    }
    int array = out.array(texts.size(), 8);
    for (int index = 0; index < texts.size(); index++) {
      byte[] text = texts.get(index);
      int from = out.append(text, 0, text.length);
      out.link(array + RowBuffer.elements(texts.size()) + 8 * index, array, from, text.length);
    }
    out.link(at + 8 * LENIENCIES, row, array, out.size - array);
  }

  private void error(Undecodable error, int row, int at) {
    if (error == null) {
      out.setNull(row, LENIENCIES + 1);
      return;
    }
    int inner = out.row(ERROR.size());
    int field = inner + RowBuffer.bits(ERROR.size());
    text(error.reason, inner, field, 0);
    if (hasType(row)) {
      out.putShort(field + 8, out.short16(at));
    } else {
      out.setNull(inner, 1);
    }
    if (error.version == null) {
      out.setNull(inner, 2);
    } else {
      out.putShort(field + 8 * 2, error.version.shortValue());
    }
    text(error.path, inner, field, 3);
    if (error.offset == null) {
      out.setNull(inner, 4);
    } else {
      out.putInt(field + 8 * 4, error.offset);
    }
    text(error.getMessage(), inner, field, 5);
    out.link(at + 8 * (LENIENCIES + 1), row, inner, out.size - inner);
  }

  private boolean hasType(int row) {
    return (out.long64(row) & 1) == 0;
  }

  private void text(String text, int row, int at, int slot) {
    if (text == null) {
      out.setNull(row, slot);
    } else {
      byte[] bytes = utf8(text);
      out.link(at + 8 * slot, row, out.append(bytes, 0, bytes.length), bytes.length);
    }
  }

  private void binary(byte[] bytes, int row, int at, int slot) {
    if (bytes == null) {
      out.setNull(row, slot);
    } else {
      out.link(at + 8 * slot, row, out.append(bytes, 0, bytes.length), bytes.length);
    }
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private void prepare() {
    List<Record> all = chosen(asked, topic);
    int highest = -1;
    for (Record record : all) {
      highest = Math.max(highest, record.type);
    }
    int[] made = new int[highest + 1];
    Arrays.fill(made, -1);
    for (int place = 0; place < all.size(); place++) {
      made[all.get(place).type] = place;
    }
    places = made;
    out = new RowBuffer();
    last = new LastCall();
    keyCursor = new Cursor();
    valueCursor = new Cursor();
    isVariable = new boolean[WIDTH + all.size()];
    Arrays.fill(isVariable, LENIENCIES, isVariable.length, true);
    framing = asked.read().topics.get(topic).get(0).framing;
    records = all.toArray(new Record[0]);
  }
}
