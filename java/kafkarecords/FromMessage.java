package kafkarecords;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;

/** {@code from_<message>}: turns a binary column into the struct of a message. */
public final class FromMessage extends Function<InternalRow> {
  private final boolean isFailfast;
  private final boolean keepsTags;
  private final boolean showsSecrets;
  /** The version of bytes without a prefix; null if they have a prefix. */
  private final Integer bare;
  /** The version to read in, regardless of the prefix; null to use the version in the prefix. */
  private final Integer readAs;
  private final boolean newerAsHighest;
  private transient Message message;
  private transient RowBuffer buffer;
  private transient Cursor cursor;
  private transient LastCall last;
  /** The result of the last call. */
  private transient InternalRow found;

  FromMessage(Asked asked, Message message) {
    super(asked, SparkTypes.of(message, asked.flag("unknown_tags", false), false), DataTypes.BinaryType);
    asked.allowOnly(Arrays.asList("mode", "unknown_tags", "show_secrets", "version", "parse_as", "newer_as_highest"));
    isFailfast = asked.isFailfast();
    keepsTags = asked.flag("unknown_tags", false);
    showsSecrets = asked.flag("show_secrets", false);
    bare = asked.number("version");
    Integer parseAs = asked.number("parse_as");
    if (bare != null && parseAs != null) {
      throw asked.wrong("pass version for bytes that do not start with a version, and parse_as for bytes that do");
    }
    newerAsHighest = asked.flag("newer_as_highest", message.newerAsHighest);
    readAs = parseAs;
    for (Integer version : new Integer[] {bare, readAs}) {
      if (version != null && !message.has(version)) {
        throw asked.wrong(Undecodable.unsupported(message, version).getMessage());
      }
    }
  }

  /** The struct of the message; null for null, for keys of other types and, unless FAILFAST, for unreadable bytes. */
  public InternalRow invoke(byte[] data) {
    if (data == null) {
      return null;
    }
    if (buffer == null) {
      message = asked.read().messages.get(asked.function.substring("from_".length()));
      buffer = new RowBuffer();
      cursor = new Cursor();
      last = new LastCall();
    }
    if (!last.was(data, null, 0)) {
      last.forget();
      found = readable(data);
      last.keep(data, null, 0);
    }
    return found;
  }

  private InternalRow readable(byte[] data) {
    try {
      return read(data);
    } catch (Undecodable error) {
      if (isFailfast) {
        throw error.thrown("");
      }
      return null;
    }
  }

  private InternalRow read(byte[] data) {
    if (bare != null) {
      return single(message, bare, keepsTags, showsSecrets, cursor.at(data, 0), buffer.emptied());
    }
    if (message.kind == Message.Kind.RECORD) {
      int type = Framing.METADATA.type(null, data);
      if (type == Framing.NONE) {
        throw Framing.METADATA.unframed(null, data);
      }
      if (type != message.recordType) {
        return null;
      }
      long found = Framing.METADATA.version(data);
      int version = Framing.number(found);
      return single(
          message, version, keepsTags, showsSecrets, cursor.at(data, Framing.at(found)), buffer.emptied());
    }
    boolean isKey = message.kind == Message.Kind.KEY;
    if (data.length < Framing.PREFIX) {
      throw isKey ? Undecodable.shortKey(data.length) : Undecodable.shortValue(data.length);
    }
    int version = Framing.prefix(data);
    if (isKey) {
      if (version != message.recordType) {
        return null;
      }
      version = 0;
    } else if (readAs != null) {
      version = readAs;
    } else if (newerAsHighest) {
      version = Math.min(version, message.highest);
    }
    return single(message, version, keepsTags, showsSecrets, cursor.at(data, Framing.PREFIX), buffer.emptied());
  }

  private static InternalRow single(
      Message message, int version, boolean keepsTags, boolean showsSecrets, Cursor cursor, RowBuffer out) {
    int row = message(message, version, keepsTags, showsSecrets, cursor, out);
    return out.row(row, message.layout(version, keepsTags).fields);
  }

  /** Reads the message at the cursor into a row at the end of {@code out}. Returns the position of the row. */
  static int message(
      Message message, int version, boolean keepsTags, boolean showsSecrets, Cursor cursor, RowBuffer out) {
    if (!message.has(version)) {
      throw Undecodable.unsupported(message, version);
    }
    try {
      Layout layout = message.layout(version, keepsTags);
      int row = Reader.struct(layout, cursor, out);
      if (message.kind == Message.Kind.RECORD && cursor.left() > 0) {
        String left = Cursor.plural(cursor.left(), "byte");
        throw cursor.failure("TrailingBytes", cursor.pos, "ends here, but is followed by " + left);
      }
      if (!showsSecrets && message.secrets() != null) {
        message.secrets().hide(layout, out, row);
      }
      return row;
    } catch (ReadFailure failure) {
      throw failure.located(message, version);
    }
  }

  /** {@code from_<message>} for bytes without a prefix, with a column that contains the version of each. */
  public static final class OfVersion extends Function<InternalRow> {
    private final boolean isFailfast;
    private final boolean keepsTags;
    private final boolean showsSecrets;
    private transient Message message;
    private transient RowBuffer buffer;
    private transient Cursor cursor;

    OfVersion(Asked asked, Message message) {
      super(
          asked,
          SparkTypes.of(message, asked.flag("unknown_tags", false), false),
          DataTypes.BinaryType,
          DataTypes.IntegerType);
      asked.allowOnly(Arrays.asList("mode", "unknown_tags", "show_secrets"));
      isFailfast = asked.isFailfast();
      keepsTags = asked.flag("unknown_tags", false);
      showsSecrets = asked.flag("show_secrets", false);
    }

    /** There is no {@code invoke}, because Spark would pass 0 for a null version. */
    @Override
    public InternalRow produceResult(InternalRow input) {
      if (input.isNullAt(0) || input.isNullAt(1)) {
        return null;
      }
      if (buffer == null) {
        message = asked.read().messages.get(asked.function.substring("from_".length()));
        buffer = new RowBuffer();
        cursor = new Cursor();
      }
      try {
        cursor.at(input.getBinary(0), 0);
        return single(message, input.getInt(1), keepsTags, showsSecrets, cursor, buffer.emptied());
      } catch (Undecodable error) {
        if (isFailfast) {
          throw error.thrown("");
        }
        return null;
      }
    }
  }
}
