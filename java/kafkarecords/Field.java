package kafkarecords;

/** A field of a struct as described in a spec; see kafka_records_runtime.schema.FieldSchema. */
final class Field {
  final String name;
  /** The type of the field or, for an array, of its elements. */
  final String base;
  final boolean isArray;
  final Range versions;
  final Range nullable;
  final Range flexible;
  /** The tag; -1 for none. */
  final int tag;
  final Range tagged;
  final boolean ignorable;
  /** The default: empty for that of the type, {@code null}, or {@code =} and a text. */
  final String fallback;
  final String about;

  Field(String[] line) {
    name = line[1];
    isArray = line[2].startsWith("[]");
    base = isArray ? line[2].substring(2) : line[2];
    versions = Range.of(line[3]);
    nullable = Range.of(line[4]);
    flexible = Range.of(line[5]);
    tag = line[6].isEmpty() ? -1 : Integer.parseInt(line[6]);
    tagged = Range.of(line[7]);
    ignorable = line[8].equals("1");
    fallback = line[9];
    about = line[10];
  }

  boolean defaultsToNull() {
    return fallback.equals("null");
  }

  boolean canBeNull() {
    return !nullable.isEmpty() || defaultsToNull();
  }
}
