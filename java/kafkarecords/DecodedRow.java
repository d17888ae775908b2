package kafkarecords;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * The result of {@code decode_<topic>} for one record: columns that are the same for all topics, and one column for
 * each record type, of which at most one is not null.
 *
 * <p>Spark nearly always reads the columns separately, so they are Java fields and not bytes: generated code reads them
 * by constant ordinals, which the JVM compiles to a field access. Only the struct of the record is an UnsafeRow, which
 * Spark copies as a whole.
 */
final class DecodedRow extends GenericInternalRow {
  static final StructType ERROR =
      new StructType()
          .add("reason", DataTypes.StringType)
          .add("record_type", DataTypes.ShortType)
          .add("version", DataTypes.ShortType)
          .add("path", DataTypes.StringType)
          .add("byte_offset", DataTypes.IntegerType)
          .add("message", DataTypes.StringType);
  /** The columns that are the same for all topics. */
  static final StructType HEAD =
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
  private static final UnsafeArrayData NO_LENIENCIES = noLeniencies();

  private final int fields;
  boolean hasType;
  short type;
  boolean hasVersion;
  short version;
  /** True for a marker, which is neither a tombstone nor a record. */
  boolean isControl;
  boolean isTombstone;
  int keyLeft;
  int valueLeft;
  boolean hasUnknownTags;
  /** The names of leniencies; null for none. */
  private UnsafeArrayData leniencies;
  private UnsafeRow error;
  private boolean keepsBytes;
  /** Whether the bytes of the value may contain a secret. */
  boolean hidesValue;
  private byte[] rawKey;
  private byte[] rawValue;
  /** The position of the record's column among those of records; -1 if the record has none. */
  private int place;
  private final UnsafeRow record;

  /** {@code parts}: the number of fields in the struct of a record. */
  DecodedRow(int records, int parts) {
    super(null);
    fields = WIDTH + records;
    record = new UnsafeRow(parts);
  }

  private static UnsafeArrayData noLeniencies() {
    UnsafeArrayData made = new UnsafeArrayData();
    made.pointTo(new byte[8], Platform.BYTE_ARRAY_OFFSET, 8);
    return made;
  }

  /** Clears the row: nothing is known about its record yet. */
  void clear() {
    hasType = false;
    hasVersion = false;
    isControl = false;
    isTombstone = false;
    keyLeft = 0;
    valueLeft = 0;
    hasUnknownTags = false;
    leniencies = null;
    error = null;
    keepsBytes = false;
    hidesValue = false;
    rawKey = null;
    rawValue = null;
    place = -1;
  }

  /** Shows the bytes of the record in its columns. */
  void keepBytes(byte[] key, byte[] value) {
    keepsBytes = true;
    rawKey = key;
    rawValue = hidesValue && value != null ? Secrets.REDACTED : value;
  }

  /**
   * Uses the arrays of another call, which have equal bytes. The content of the arrays of the former call may change.
   */
  void renewBytes(byte[] key, byte[] value) {
    if (keepsBytes) {
      keepBytes(key, value);
    }
  }

  boolean hasLeniencies() {
    return leniencies != null;
  }

  /** Sets the struct of the record: {@code size} bytes from {@code from} on. */
  void setRecord(int place, byte[] bytes, int from, int size) {
    this.place = place;
    record.pointTo(bytes, (long) Platform.BYTE_ARRAY_OFFSET + from, size);
  }

  void setLeniencies(byte[] bytes, int from, int size) {
    leniencies = new UnsafeArrayData();
    leniencies.pointTo(bytes, (long) Platform.BYTE_ARRAY_OFFSET + from, size);
  }

  void setError(byte[] bytes, int from, int size) {
    error = new UnsafeRow(ERROR.size());
    error.pointTo(bytes, (long) Platform.BYTE_ARRAY_OFFSET + from, size);
  }

  // -- what Spark asks for --------------------------------------------------------------------------------------------

  @Override
  public int numFields() {
    return fields;
  }

  @Override
  public boolean isNullAt(int ordinal) {
    switch (ordinal) {
      case 0:
        return !hasType;
      case 1:
        return !hasVersion;
      case 2:
        return isControl;
      case 3:
      case 4:
      case 5:
      case 6:
        return false;
      case 7:
        return error == null;
      case 8:
        return rawKey == null;
      case 9:
        return rawValue == null;
      default:
        return ordinal - WIDTH != place;
    }
  }

  @Override
  public short getShort(int ordinal) {
    return ordinal == 0 ? type : version;
  }

  @Override
  public boolean getBoolean(int ordinal) {
    return ordinal == 2 ? isTombstone : hasUnknownTags;
  }

  @Override
  public int getInt(int ordinal) {
    return ordinal == 3 ? keyLeft : valueLeft;
  }

  @Override
  public UnsafeArrayData getArray(int ordinal) {
    return leniencies == null ? NO_LENIENCIES : leniencies;
  }

  @Override
  public byte[] getBinary(int ordinal) {
    return ordinal == 8 ? rawKey : rawValue;
  }

  @Override
  public InternalRow getStruct(int ordinal, int count) {
    return ordinal == 7 ? error : record;
  }

  @Override
  public Object get(int ordinal, DataType type) {
    return genericGet(ordinal);
  }

  @Override
  public Object genericGet(int ordinal) {
    if (isNullAt(ordinal)) {
      return null;
    }
    switch (ordinal) {
      case 0:
      case 1:
        return getShort(ordinal);
      case 2:
      case 5:
        return getBoolean(ordinal);
      case 3:
      case 4:
        return getInt(ordinal);
      case 6:
        return getArray(ordinal);
      case 8:
      case 9:
        return getBinary(ordinal);
      default:
        return getStruct(ordinal, 0);
    }
  }

  /** The columns as an array, which the inherited {@code toSeq} needs and the parent class does not have. */
  @Override
  public Object[] values() {
    Object[] values = new Object[fields];
    for (int ordinal = 0; ordinal < fields; ordinal++) {
      values[ordinal] = genericGet(ordinal);
    }
    return values;
  }

  @Override
  public void setNullAt(int ordinal) {
    throw new UnsupportedOperationException("a decoded row cannot be changed");
  }

  @Override
  public void update(int ordinal, Object value) {
    throw new UnsupportedOperationException("a decoded row cannot be changed");
  }

  @Override
  public GenericInternalRow copy() {
    Object[] values = values();
    for (int ordinal = 0; ordinal < fields; ordinal++) {
      Object value = values[ordinal];
      values[ordinal] = value instanceof byte[] ? ((byte[]) value).clone() : InternalRow.copyValue(value);
    }
    return new GenericInternalRow(values);
  }
}
