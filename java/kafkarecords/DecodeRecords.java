package kafkarecords;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code decode_<topic>}: turns key and value of a record of any type into the columns of decode_records, without the
 * coordinates.
 *
 * <p>The columns and their contents are those of kafka_records_engine.spark.decode.
 */
public final class DecodeRecords extends Function<InternalRow> {
  private static final int NO_VERSION = Integer.MIN_VALUE;

  private final String topic;
  private final boolean isFailfast;
  private final boolean keepsTags;
  private final boolean showsSecrets;
  private final String[] chosen;
  /** The topic of the records; null if none was named. */
  private final String expected;
  private transient Framing framing;
  private transient Record[] records;
  /** Whether some record of the topic may contain secrets, which must not be shown. */
  private transient boolean hides;
  private transient RowBuffer out;
  private transient DecodedRow row;
  /**
   * On the driver, where Spark folds constants, it keeps rows without a copy. In a task, everything that keeps rows
   * copies them.
   */
  private transient boolean isOnDriver;
  private transient LastCall last;
  /** The result of the last call. */
  private transient InternalRow found;
  private transient Cursor keyCursor;
  private transient Cursor valueCursor;
  /** For each record type its position in {@code records}; -1 for types without a column. */
  private transient int[] places;

  DecodeRecords(Asked asked, String topic, DataType[] inputs) {
    super(asked, result(asked, topic), inputs);
    this.topic = topic;
    isFailfast = asked.isFailfast();
    keepsTags = asked.flag("unknown_tags", false);
    showsSecrets = asked.flag("show_secrets", false);
    chosen = asked.names("records");
    expected = asked.text("topic");
  }

  private static StructType result(Asked asked, String topic) {
    asked.allowOnly(Arrays.asList("mode", "unknown_tags", "show_secrets", "records", "comments", "topic"));
    StructType type = DecodedRow.HEAD;
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

  private InternalRow decoded(byte[] key, byte[] value, boolean isControl, boolean isOther) {
    if (records == null) {
      prepare();
    }
    int flags = (isControl ? 1 : 0) | (isOther ? 2 : 0);
    if (!last.was(key, value, flags)) {
      last.forget();
      found = null;
      // SQL may give rows of any type: of those that were not chosen there is no row.
      int type = isControl ? Framing.NONE : framing.type(key, value);
      if (chosen == null || !isControl && (type == Framing.NONE || place(type) >= 0)) {
        row.clear();
        if (isControl && !isOther) {
          row.isControl = true;
        } else {
          record(key, value, isOther ? Framing.NONE : type, isOther);
        }
        found = isOnDriver ? row.copy() : row;
      }
      last.keep(key, value, flags);
    } else {
      row.renewBytes(key, value);
    }
    return found;
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

  /** For FAILFAST, whose errors name the place of the record. */
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

  /** Sets the columns of a record. {@code isOther}: it belongs to another topic, whose records have other types. */
  private void record(byte[] key, byte[] value, int type, boolean isOther) {
    out.emptied();
    row.isTombstone = value == null;
    Undecodable error = null;
    int place = -1;
    if (type == Framing.NONE) {
      error = isOther ? Undecodable.otherTopic(expected) : framing.unframed(key, value);
    } else {
      row.hasType = true;
      row.type = (short) type;
      place = place(type);
      if (place < 0 && chosen == null) {
        error = framing.unknownType(value);
      }
    }
    boolean keepsBytes = place < 0;
    if (place >= 0) {
      error = pair(place, key, value);
      keepsBytes =
          error != null
              || row.hasLeniencies()
              || row.hasUnknownTags && !keepsTags
              || (row.keyLeft | row.valueLeft) != 0;
    }
    if (error != null) {
      if (isFailfast) {
        throw error;
      }
      error(error);
    }
    if (keepsBytes) {
      row.hidesValue = hides && (place < 0 || records[place].value.secrets() != null);
      row.keepBytes(key, value);
    }
  }

  /** Reads key and value into the struct of their record. Returns why that failed, or null. */
  private Undecodable pair(int place, byte[] key, byte[] value) {
    Record record = records[place];
    int parts = record.key == null ? 1 : 2;
    int pair = out.row(parts);
    Cursor ofKey = null;
    Cursor ofValue = null;
    boolean hasKey = false;
    boolean hasValue = false;
    Undecodable error = null;
    int end = pair;
    try {
      if (record.key != null) {
        ofKey = keyCursor.at(key, Framing.PREFIX);
        int from = FromMessage.message(record.key, 0, keepsTags, showsSecrets, ofKey, out);
        end = out.size;
        out.link(pair + 8, pair, from, end - from);
        hasKey = true;
        row.keyLeft = ofKey.left();
        row.hasUnknownTags = ofKey.hasUnknownTags;
      }
      if (value != null) {
        long found = framing.version(value);
        int version = Framing.number(found);
        row.hasVersion = true;
        row.version = (short) version;
        ofValue = valueCursor.at(value, Framing.at(found));
        int from = FromMessage.message(record.value, version, keepsTags, showsSecrets, ofValue, out);
        out.link(pair + 8 * parts, pair, from, out.size - from);
        hasValue = true;
        row.valueLeft = ofValue.left();
        row.hasUnknownTags |= ofValue.hasUnknownTags;
      }
    } catch (Undecodable met) {
      error = met;
      out.size = end; // the row has no struct if it could not be read to its end
    }
    if (hasKey || hasValue) {
      if (!hasValue) {
        out.setNull(pair, parts - 1);
      }
      row.setRecord(place, out.bytes, pair, out.size - pair);
    }
    if (ofKey != null && ofKey.leniencies != null || ofValue != null && ofValue.leniencies != null) {
      leniencies(ofKey, ofValue);
    }
    return error;
  }

  /** Writes the names of leniencies, first those of the key. */
  private void leniencies(Cursor ofKey, Cursor ofValue) {
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
    row.setLeniencies(out.bytes, array, out.size - array);
  }

  private void error(Undecodable error) {
    int fields = DecodedRow.ERROR.size();
    int inner = out.row(fields);
    int at = inner + RowBuffer.bits(fields);
    text(error.reason, inner, at, 0);
    if (row.hasType) {
      out.putShort(at + 8, row.type);
    } else {
      out.setNull(inner, 1);
    }
    if (error.version == null) {
      out.setNull(inner, 2);
    } else {
      out.putShort(at + 8 * 2, error.version.shortValue());
    }
    text(error.path, inner, at, 3);
    if (error.offset == null) {
      out.setNull(inner, 4);
    } else {
      out.putInt(at + 8 * 4, error.offset);
    }
    text(error.getMessage(), inner, at, 5);
    row.setError(out.bytes, inner, out.size - inner);
  }

  private void text(String text, int row, int at, int slot) {
    if (text == null) {
      out.setNull(row, slot);
    } else {
      byte[] bytes = utf8(text);
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
    row = new DecodedRow(all.size(), all.get(0).key == null ? 1 : 2);
    isOnDriver = TaskContext.get() == null;
    last = new LastCall();
    keyCursor = new Cursor();
    valueCursor = new Cursor();
    List<Record> ofTopic = asked.read().topics.get(topic);
    framing = ofTopic.get(0).framing;
    hides = !showsSecrets && ofTopic.stream().anyMatch(record -> record.value.secrets() != null);
    records = all.toArray(new Record[0]);
  }
}
