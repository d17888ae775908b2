package kafkarecords;

/** Why a value cannot be written. Each level above adds its place. The texts are those of the Python errors. */
final class WriteFailure extends RuntimeException {
  private final String detail;
  private String path = "";

  WriteFailure(String detail) {
    super(null, null, false, false);
    this.detail = detail;
  }

  static WriteFailure isNull() {
    return new WriteFailure("is None, which this version does not allow");
  }

  WriteFailure inside(String part) {
    path = path.isEmpty() || path.startsWith("[") ? part + path : part + "." + path;
    return this;
  }

  IllegalArgumentException located(Message message, int version) {
    String place = path.isEmpty() ? "the message" : path;
    return new IllegalArgumentException(message.name + " v" + version + ": " + place + " " + detail);
  }
}
