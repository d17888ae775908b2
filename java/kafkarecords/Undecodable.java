package kafkarecords;

/** A key, a value or a message cannot be decoded. Its fields become the column {@code error} of a decoded row. */
final class Undecodable extends RuntimeException {
  final String reason;
  final Integer version;
  final String path;
  final Integer offset;

  Undecodable(String reason, Integer version, String path, Integer offset, String text) {
    super(text, null, false, false); // no stack trace, because nearly every reader treats this as a value
    this.reason = reason;
    this.version = version;
    this.path = path;
    this.offset = offset;
  }

  static Undecodable nullKey() {
    return new Undecodable("NullKey", null, null, null, "the record has no key");
  }

  static Undecodable otherTopic(String expected) {
    return new Undecodable(
        "WrongTopic",
        null,
        null,
        null,
        "the row is of another topic than " + expected + ", whose records have other types: leave rows of other topics"
            + " out, or name the topic that these records came from (topic=…)");
  }

  static Undecodable shortKey(int length) {
    return new Undecodable(
        "MissingRecordType",
        null,
        null,
        null,
        "the key has " + Cursor.plural(length, "byte") + ", but a key starts with an int16 record type");
  }

  static Undecodable shortValue(int length) {
    return new Undecodable(
        "MissingValueVersion",
        null,
        null,
        null,
        "the value has " + Cursor.plural(length, "byte") + ", but a value starts with an int16 version");
  }

  static Undecodable unexpectedKey(int length) {
    String size = Cursor.plural(length, "byte");
    return frame("UnexpectedKey", null, "the record has a key of " + size + ", but metadata records have no key");
  }

  static Undecodable nullValue() {
    return frame("NullValue", null, "the record has no value");
  }

  static Undecodable unknownFrameVersion(int version) {
    String text = "the value has the frame version " + version + " at byte 0, but only version 1 is known";
    return frame("UnknownFrameVersion", 0, text);
  }

  static Undecodable truncatedFrame(String part, int at, int length) {
    String size = Cursor.plural(length, "byte");
    return frame("TruncatedFrame", at, "the value has " + size + ": the " + part + " at byte " + at + " is cut off");
  }

  static Undecodable invalidFrameNumber(String part, int at, String fault) {
    return frame("InvalidFrameNumber", at, "the " + part + " at byte " + at + " of the value " + fault);
  }

  static Undecodable unknownApiKey(int apiKey, int at) {
    String text = "no record of this topic has the api key " + apiKey + ", at byte " + at + " of the value";
    return frame("UnknownApiKey", at, text);
  }

  private static Undecodable frame(String reason, Integer offset, String text) {
    return new Undecodable(reason, null, null, offset, text);
  }

  static Undecodable unsupported(Message message, int version) {
    String known =
        message.lowest > message.highest
            ? "it has no versions"
            : message.lowest == message.highest
                ? "its only version is " + message.lowest
                : "its versions are " + message.lowest + " to " + message.highest;
    return new Undecodable(
        "UnsupportedVersion", version, "", 0, message.name + " has no version " + version + ": " + known);
  }

  /**
   * The exception that a function throws under FAILFAST. Its class is one of Java itself, because the driver cannot
   * load a class from a jar that was added to a session. It would report that error instead of the record and its
   * problem.
   */
  IllegalArgumentException thrown(String place) {
    return new IllegalArgumentException(place + getMessage());
  }
}
