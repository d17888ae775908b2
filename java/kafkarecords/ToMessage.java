package kafkarecords;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** {@code to_<message>}: turns a struct column into the bytes of a message. */
public final class ToMessage extends Function<byte[]> {
  private final boolean isPermissive;
  private final int version;
  private final boolean hasPrefix;
  private transient Message message;
  private transient Writer writer;
  private transient StructType given;
  private transient Output out;

  ToMessage(Asked asked, Message message, DataType given) {
    super(asked, DataTypes.BinaryType, nullable(given));
    asked.allowOnly(Arrays.asList("mode", "version", "version_prefix"));
    isPermissive = asked.isPermissive(false);
    Integer chosen = asked.number("version");
    version = chosen == null ? message.highest : chosen;
    hasPrefix = asked.flag("version_prefix", true);
    if (!message.has(version)) {
      throw asked.wrong(Undecodable.unsupported(message, version).getMessage());
    }
    new Writer(message, version, given); // checks immediately whether the column fits
  }

  /** The bytes; null for null and, under PERMISSIVE, for values that cannot be written. */
  public byte[] invoke(InternalRow value) {
    if (value == null) {
      return null;
    }
    if (writer == null) {
      message = message(asked);
      out = new Output();
      DataType type = inputTypes()[0];
      writer = new Writer(message, version, type);
      given = type instanceof StructType ? (StructType) type : null; // else every value is null
    }
    return written(message, version, hasPrefix, writer, given, value, out.emptied(), isPermissive);
  }

  static Message message(Asked asked) {
    return asked.read().messages.get(asked.function.substring("to_".length()));
  }

  static byte[] written(
      Message message,
      int version,
      boolean hasPrefix,
      Writer writer,
      StructType given,
      InternalRow value,
      Output out,
      boolean isPermissive) {
    if (message.kind == Message.Kind.RECORD) {
      out.uvarint(Framing.FRAME_VERSION);
      out.uvarint(message.recordType);
      out.uvarint(version);
    } else if (message.kind == Message.Kind.KEY) {
      out.number(message.recordType, 2);
    } else if (hasPrefix) {
      out.number(version, 2);
    }
    try {
      Secrets.refuseRedacted(message, version, given, value);
      writer.write(value, out);
    } catch (IllegalArgumentException error) {
      if (isPermissive) {
        return null;
      }
      throw error;
    }
    return out.copy();
  }

  /** The type with null allowed everywhere, because Spark turns a null into 0 if a type does not allow null. */
  static DataType nullable(DataType type) {
    if (type instanceof StructType) {
      StructType made = new StructType();
      for (StructField field : ((StructType) type).fields()) {
        made = made.add(field.name(), nullable(field.dataType()), true);
      }
      return made;
    }
    if (type instanceof ArrayType) {
      return DataTypes.createArrayType(nullable(((ArrayType) type).elementType()), true);
    }
    return type;
  }

  /** {@code to_<message>} with a column that contains the version to write for each row. */
  public static final class OfVersion extends Function<byte[]> {
    private final boolean isPermissive;
    private final boolean hasPrefix;
    private transient Message message;
    private transient Writer[] writers;
    private transient Output out;

    OfVersion(Asked asked, Message message, DataType given) {
      super(asked, DataTypes.BinaryType, nullable(given), DataTypes.IntegerType);
      asked.allowOnly(Arrays.asList("mode", "version_prefix"));
      isPermissive = asked.isPermissive(false);
      hasPrefix = asked.flag("version_prefix", true);
    }

    /** There is no {@code invoke}, because Spark would pass 0 for a null version. */
    @Override
    public byte[] produceResult(InternalRow input) {
      if (input.isNullAt(0)) {
        return null;
      }
      if (message == null) {
        message = message(asked);
        writers = new Writer[Math.max(0, message.highest - message.lowest + 1)];
        out = new Output();
      }
      try {
        if (input.isNullAt(1)) {
          throw new IllegalArgumentException(message.name + ": version is of type null, expected a number");
        }
        int version = input.getInt(1);
        if (!message.has(version)) {
          throw Undecodable.unsupported(message, version).thrown("");
        }
        int at = version - message.lowest;
        StructType given = (StructType) inputTypes()[0];
        if (writers[at] == null) {
          writers[at] = new Writer(message, version, given);
        }
        InternalRow value = input.getStruct(0, given.size());
        return written(message, version, hasPrefix, writers[at], given, value, out.emptied(), false);
      } catch (IllegalArgumentException error) {
        if (isPermissive) {
          return null;
        }
        throw error;
      }
    }
  }
}
