package kafkarecords;

/** A record type of a topic. */
final class Record {
  final int type;
  final String name;
  /** The name of its column, and of its function after {@code from_}. */
  final String column;
  final Framing framing;
  /** The key; null for a metadata record, which has none. */
  final Message key;
  final Message value;

  Record(String[] line, Framing framing, Message key, Message value) {
    this.framing = framing;
    type = Integer.parseInt(line[1]);
    name = line[2];
    column = line[3];
    this.key = key;
    this.value = value;
  }
}
