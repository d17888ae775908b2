package kafkarecords;

import java.io.Serializable;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Identifier;

/**
 * What the name of a function requests: {@code from_offset_commit_value?mode=FAILFAST&unknown_tags=true}.
 *
 * <p>When Spark binds a function, it passes the types of the arguments, but not their values. So everything that must
 * be known at that time is part of the name.
 */
final class Asked implements Serializable {
  /** The schemas of the package, in the form that {@link Schemas#of} reads. */
  final String schemas;
  final String catalog;
  final String text;
  final String function;
  private final Map<String, String> options = new LinkedHashMap<>();

  Asked(String schemas, String catalog, Identifier identifier) {
    this.schemas = schemas;
    this.catalog = catalog;
    text = identifier.name();
    int mark = text.indexOf('?');
    function = (mark < 0 ? text : text.substring(0, mark)).toLowerCase(java.util.Locale.ROOT);
    if (mark >= 0) {
      for (String option : text.substring(mark + 1).split("&")) {
        int equals = option.indexOf('=');
        if (equals < 0) {
          throw wrong("option " + option + " has no value: write " + option + "=…");
        }
        options.put(option.substring(0, equals), decoded(option.substring(equals + 1)));
      }
    }
  }

  /** Values are percent-encoded, as in a URL. */
  private static String decoded(String value) {
    try {
      return java.net.URLDecoder.decode(value, "UTF-8");
    } catch (java.io.UnsupportedEncodingException error) {
      throw new IllegalStateException(error);
    }
  }

  /** The text of an option; null if it is not given. */
  String text(String name) {
    return options.get(name);
  }

  Schemas read() {
    return Schemas.of(schemas);
  }

  /** Rejects options that are not in {@code known}. */
  void allowOnly(List<String> known) {
    Set<String> others = new HashSet<>(options.keySet());
    others.removeAll(known);
    if (!others.isEmpty()) {
      String has = known.isEmpty() ? "it has no options" : "its options are " + String.join(", ", known);
      throw wrong("there is no option " + others.iterator().next() + "; " + has);
    }
  }

  boolean isFailfast() {
    String mode = options.getOrDefault("mode", "PERMISSIVE").toUpperCase(java.util.Locale.ROOT);
    if (!mode.equals("PERMISSIVE") && !mode.equals("FAILFAST")) {
      throw wrong("mode is PERMISSIVE or FAILFAST, not " + options.get("mode"));
    }
    return mode.equals("FAILFAST");
  }

  boolean isPermissive(boolean otherwise) {
    return options.containsKey("mode") ? !isFailfast() : otherwise;
  }

  boolean flag(String name, boolean otherwise) {
    String value = options.get(name);
    if (value == null) {
      return otherwise;
    }
    if (!value.equals("true") && !value.equals("false")) {
      throw wrong(name + " is true or false, not " + value);
    }
    return value.equals("true");
  }

  /** The number of an option; null if it is not given. */
  Integer number(String name) {
    String value = options.get(name);
    try {
      return value == null ? null : Integer.valueOf(value);
    } catch (NumberFormatException error) {
      throw wrong(name + " is a number, not " + value);
    }
  }

  /** The names of an option, separated by commas; null if it is not given. */
  String[] names(String name) {
    String value = options.get(name);
    return value == null ? null : value.split(",");
  }

  UnsupportedOperationException wrong(String detail) {
    return new UnsupportedOperationException(catalog + "." + function + ": " + detail);
  }
}
