package kafkarecords;

/** A range of versions, from the lowest to the highest, both included. */
final class Range {
  static final Range NONE = new Range(0, -1);

  private final int lowest;
  private final int highest;

  private Range(int lowest, int highest) {
    this.lowest = lowest;
    this.highest = highest;
  }

  /** Reads {@code 1-4}; an empty text is the empty range. */
  static Range of(String text) {
    if (text.isEmpty()) {
      return NONE;
    }
    int dash = text.indexOf('-');
    return new Range(Integer.parseInt(text.substring(0, dash)), Integer.parseInt(text.substring(dash + 1)));
  }

  boolean has(int version) {
    return lowest <= version && version <= highest;
  }

  boolean isEmpty() {
    return lowest > highest;
  }
}
