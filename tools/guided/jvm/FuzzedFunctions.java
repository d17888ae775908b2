package kafkarecords;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What Jazzer calls with its inputs: the functions for Spark, without Spark.
 *
 * <p>The first two bytes of an input choose one of the functions in the property kafkarecords.functions. decode_TOPIC
 * gets a key, whose size is the next byte (255 for null), and the rest as value; from_MESSAGE gets the rest. Nothing may
 * be thrown under PERMISSIVE, a result must be the same after another input was read with the same buffers, and what was
 * decoded without an error must be written and read again as the same row.
 */
public final class FuzzedFunctions {
  private static final byte[] OTHER = {0, 1, 0, 1, 'g'};
  private static final int NULL = 255;
  private static final String OPTIONS = "?unknown_tags=true&show_secrets=true";

  private final String name;
  private final DecodeRecords decode;
  private final FromMessage from;
  /** The functions by version. */
  private final List<ToMessage> to = new ArrayList<>();

  private static FuzzedFunctions[] all;
  private static long sent;

  private FuzzedFunctions(Catalog catalog, String name) {
    this.name = name;
    StructType binary = new StructType().add("value", DataTypes.BinaryType);
    if (name.startsWith("decode_")) {
      decode = (DecodeRecords) bound(catalog, name + OPTIONS, binary.add("key", DataTypes.BinaryType));
      from = null;
    } else {
      decode = null;
      from = (FromMessage) bound(catalog, name + OPTIONS, binary);
      Message message = Schemas.of(Schemas.IN_THE_JAR).messages.get(name.substring(5));
      StructType made = new StructType().add("value", from.resultType());
      for (int version = message.lowest; version <= message.highest; version++) {
        to.add((ToMessage) bound(catalog, "to_" + name.substring(5) + "?version=" + version, made));
      }
    }
  }

  private static Object bound(Catalog catalog, String name, StructType given) {
    return catalog.loadFunction(Identifier.of(new String[0], name)).bind(given);
  }

  public static void fuzzerInitialize() {
    Catalog catalog = new Catalog();
    catalog.initialize("kafka_records", CaseInsensitiveStringMap.empty());
    String[] names = System.getProperty("kafkarecords.functions").split(",");
    all = Arrays.stream(names).map(each -> new FuzzedFunctions(catalog, each)).toArray(FuzzedFunctions[]::new);
  }

  public static void fuzzerTestOneInput(byte[] data) throws java.io.IOException {
    if (data.length < 2) {
      return;
    }
    if (++sent % 1000 == 0) {
      Files.writeString(Paths.get(System.getProperty("kafkarecords.sent")), Long.toString(sent));
    }
    all[(ByteBuffer.wrap(data).getShort() & 0xffff) % all.length].read(Arrays.copyOfRange(data, 2, data.length));
  }

  private void read(byte[] rest) {
    if (from == null) {
      pair(rest);
    } else {
      message(rest);
    }
  }

  private void pair(byte[] rest) {
    if (rest.length == 0) {
      return;
    }
    int size = rest[0] & 0xff;
    int end = size == NULL ? 1 : Math.min(1 + size, rest.length);
    byte[] key = size == NULL ? null : Arrays.copyOfRange(rest, 1, end);
    byte[] value = end == rest.length ? null : Arrays.copyOfRange(rest, end, rest.length);
    InternalRow first = copied(decode.invoke(key, value));
    decode.invoke(OTHER, OTHER);
    equal(first, decode.invoke(key, value), "read again");
  }

  private void message(byte[] data) {
    InternalRow first = copied(from.invoke(data));
    from.invoke(OTHER);
    equal(first, from.invoke(data), "read again");
    if (first == null) {
      return;
    }
    for (ToMessage each : to) {
      byte[] written;
      try {
        written = each.invoke(first);
      } catch (IllegalArgumentException error) {
        continue; // another version cannot have every value of this one
      }
      InternalRow back = copied(from.invoke(written));
      if (back == null) {
        throw new AssertionError(name + ": what was written cannot be read: " + hex(written));
      }
      byte[] again = each.invoke(back);
      if (!Arrays.equals(written, again)) {
        throw new AssertionError(name + ": written as " + hex(written) + ", then as " + hex(again));
      }
    }
  }

  private void equal(InternalRow first, InternalRow second, String when) {
    if (first == null ? second != null : !first.equals(copied(second))) {
      throw new AssertionError(name + ": another row when it is " + when);
    }
  }

  private static InternalRow copied(InternalRow row) {
    return row == null ? null : row.copy();
  }

  private static String hex(byte[] data) {
    StringBuilder text = new StringBuilder();
    for (byte each : data) {
      text.append(String.format("%02x", each));
    }
    return text.toString();
  }
}
