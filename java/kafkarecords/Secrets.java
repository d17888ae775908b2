package kafkarecords;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;

/**
 * The fields of a message that are secrets, and the text that replaces them.
 *
 * <p>kafka_records_runtime.kafka.secrets and config_names decide which fields are secrets, and which configs are not.
 */
final class Secrets {
  static final byte[] REDACTED = "(redacted)".getBytes(StandardCharsets.US_ASCII);

  private static final String NAMES = "config_names.txt";
  private static final Map<String, List<String>> FIELDS = new HashMap<>();
  private static final String CONFIG = "ConfigRecord";
  private static final Pattern LISTENER = Pattern.compile("listener\\.name\\.[^.]+\\.");
  private static final String BROKER = "4";

  static {
    FIELDS.put("UserScramCredentialRecord", Arrays.asList("salt", "stored_key", "server_key"));
    FIELDS.put("DelegationTokenRecord", Collections.singletonList("token_id"));
    FIELDS.put("RemoveDelegationTokenRecord", Collections.singletonList("token_id"));
  }

  /** The slots of the fields that may be secrets, in the order of the row. */
  private final int[] slots;
  /** For a config: the slots of the resource type and of the name; -1 in other messages. */
  private final int kind;
  private final int name;

  private Secrets(int[] slots, int kind, int name) {
    this.slots = slots;
    this.kind = kind;
    this.name = name;
  }

  /** The secrets of a message; null if it has none. */
  static Secrets of(Message message) {
    List<String> fields = new ArrayList<>();
    for (Field field : message.root().fields) {
      fields.add(field.name);
    }
    if (message.name.equals(CONFIG)) {
      int kind = fields.indexOf("resource_type");
      int name = fields.indexOf("name");
      int value = fields.indexOf("value");
      return kind < 0 || name < 0 || value < 0 ? null : new Secrets(new int[] {value}, kind, name);
    }
    List<String> names = FIELDS.getOrDefault(message.name, Collections.emptyList());
    int[] slots = names.stream().mapToInt(fields::indexOf).filter(slot -> slot >= 0).sorted().toArray();
    return slots.length == 0 ? null : new Secrets(slots, -1, -1);
  }

  /** Replaces the secrets of the row at the end of {@code out} by a text. The row loses its unknown tagged fields. */
  void hide(Layout layout, RowBuffer out, int row) {
    if (kind >= 0 && (out.isNull(row, slots[0]) || !isSecret(layout, out, row))) {
      return;
    }
    int first = row + layout.bits;
    for (int slot : slots) {
      out.clear(row, slot, layout.bits);
      out.link(first + 8 * slot, row, out.append(REDACTED, 0, REDACTED.length), REDACTED.length);
    }
    if (layout.keepsTags) {
      Fallback.nothing(out, row, layout.body.length, layout.fields);
    }
    out.inOrder(row, layout.fields, layout.isVariable);
  }

  private boolean isSecret(Layout layout, RowBuffer out, int row) {
    int first = row + layout.bits;
    long placed = out.long64(first + 8 * name);
    String text = new String(out.bytes, row + (int) (placed >> 32), (int) placed, StandardCharsets.UTF_8);
    return isSecret(out.bytes[first + 8 * kind], text);
  }

  private static boolean isSecret(int kind, String name) {
    Set<String> known = Names.KNOWN.getOrDefault(String.valueOf(kind), Collections.emptySet());
    boolean isKnown =
        known.contains(name)
            || String.valueOf(kind).equals(BROKER) && known.contains(LISTENER.matcher(name).replaceFirst(""));
    return !isKnown;
  }

  /** Rejects a struct of type {@code given} that contains the replacement of a secret. */
  static void refuseRedacted(Message message, int version, StructType given, InternalRow value) {
    Secrets secrets = message.secrets();
    if (secrets == null) {
      return;
    }
    for (int slot : secrets.slots) {
      String field = message.root().fields.get(slot).name;
      if (isRedacted(given, value, field) && (secrets.kind < 0 || isSecretConfig(given, value))) {
        throw new IllegalArgumentException(
            message.name + " v" + version + ": " + field
                + " is (redacted) instead of a secret: decode it with show_secrets");
      }
    }
  }

  private static boolean isRedacted(StructType given, InternalRow value, String field) {
    int at = place(given, value, field);
    if (at < 0) {
      return false;
    }
    if (given.apply(at).dataType() instanceof BinaryType) {
      return Arrays.equals(value.getBinary(at), REDACTED);
    }
    return given.apply(at).dataType() instanceof StringType
        && Arrays.equals(value.getUTF8String(at).getBytes(), REDACTED);
  }

  private static boolean isSecretConfig(StructType given, InternalRow value) {
    int kind = place(given, value, "resource_type");
    int name = place(given, value, "name");
    if (kind < 0 || name < 0 || !(given.apply(kind).dataType() instanceof IntegralType)) {
      return false;
    }
    Object number = value.get(kind, given.apply(kind).dataType());
    return isSecret(((Number) number).intValue(), value.getUTF8String(name).toString());
  }

  /** The ordinal of a field that is not null, or -1. */
  private static int place(StructType given, InternalRow value, String field) {
    List<String> names = Arrays.asList(given.fieldNames());
    int at = names.indexOf(field);
    return at < 0 || value.isNullAt(at) ? -1 : at;
  }

  /** By the number of a resource type, the names of configs that are not secrets. Read on first use. */
  private static final class Names {
    static final Map<String, Set<String>> KNOWN = read();

    private static Map<String, Set<String>> read() {
      Map<String, Set<String>> known = new HashMap<>();
      try (InputStream stream = Secrets.class.getResourceAsStream(NAMES)) {
        if (stream == null) {
          throw new IllegalStateException("the jar of kafka-records lacks " + NAMES + ": build it again with make jar");
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          String[] names = line.split("\t");
          known.put(names[0], new HashSet<>(Arrays.asList(names).subList(1, names.length)));
        }
      } catch (IOException error) {
        throw new IllegalStateException(error);
      }
      return known;
    }
  }
}
