package kafkarecords;

/**
 * Why bytes are not the expected message. The lowest level knows the problem; each level above adds its place.
 *
 * <p>Reason and text are those of the Python error with the same name (kafka_records_runtime.errors).
 */
final class ReadFailure extends RuntimeException {
  final String reason;
  final int offset;
  private final String detail;
  private String path = "";

  ReadFailure(String reason, int offset, String detail) {
    super(null, null, false, false); // no stack trace: millions of rows may fail
    this.reason = reason;
    this.offset = offset;
    this.detail = detail;
  }

  /** Puts a part before the path: the name of a field, or {@code [2]}, which needs no dot after its name. */
  ReadFailure inside(String part) {
    path = path.isEmpty() || path.startsWith("[") ? part + path : part + "." + path;
    return this;
  }

  Undecodable located(Message message, int version) {
    String note = message.note(version);
    String text =
        message.name + " v" + version + " at byte " + offset + ": " + (path.isEmpty() ? "the message" : path) + " "
            + detail + (note.isEmpty() ? "" : "; " + note);
    return new Undecodable(reason, version, path, offset, text);
  }
}
