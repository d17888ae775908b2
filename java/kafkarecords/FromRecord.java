package kafkarecords;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;

/**
 * {@code from_<record>}: turns key and value of a record into {@code struct<key, value>}; null for records of other
 * types.
 *
 * <p>Under PERMISSIVE, if key or value cannot be read, the whole record is null, because a key without its value would
 * look like a tombstone.
 */
public final class FromRecord extends Function<InternalRow> {
  private final boolean isFailfast;
  private final boolean keepsTags;
  private final boolean showsSecrets;
  private transient Record record;
  private transient RowBuffer buffer;
  private transient Cursor cursor;
  private transient LastCall last;
  /** The result of the last call. */
  private transient InternalRow found;

  FromRecord(Asked asked, Record record) {
    super(
        asked,
        SparkTypes.of(record, asked.flag("unknown_tags", false), false),
        DataTypes.BinaryType,
        DataTypes.BinaryType);
    asked.allowOnly(Arrays.asList("mode", "unknown_tags", "show_secrets"));
    isFailfast = asked.isFailfast();
    keepsTags = asked.flag("unknown_tags", false);
    showsSecrets = asked.flag("show_secrets", false);
  }

  /** The struct of a record. A null value means a tombstone: then {@code value} is null. */
  public InternalRow invoke(byte[] key, byte[] value) {
    if (buffer == null) {
      buffer = new RowBuffer();
      cursor = new Cursor();
      last = new LastCall();
      record = asked.read().records.get(asked.function.substring("from_".length()));
    }
    if (record.framing.type(key, value) != record.type) {
      return null;
    }
    if (!last.was(key, value, 0)) {
      last.forget();
      found = read(key, value);
      last.keep(key, value, 0);
    }
    return found;
  }

  private InternalRow read(byte[] key, byte[] value) {
    try {
      RowBuffer out = buffer.emptied();
      int fields = record.key == null ? 1 : 2;
      int row = out.row(fields);
      if (record.key != null) {
        int ofKey = FromMessage.message(record.key, 0, keepsTags, showsSecrets, cursor.at(key, Framing.PREFIX), out);
        out.link(row + 8, row, ofKey, out.size - ofKey);
      }
      if (value == null) {
        out.setNull(row, fields - 1);
      } else {
        long version = record.framing.version(value);
        cursor.at(value, Framing.at(version));
        int ofValue = FromMessage.message(record.value, Framing.number(version), keepsTags, showsSecrets, cursor, out);
        out.link(row + 8 * fields, row, ofValue, out.size - ofValue);
      }
      return out.row(row, fields);
    } catch (Undecodable error) {
      if (isFailfast) {
        throw error.thrown("");
      }
      return null;
    }
  }
}
