package kafkarecords;

/** How a length, a count or the marker of a nullable struct is encoded. */
enum Head {
  NONE,
  INT8,
  INT16,
  INT32,
  UVARINT;

  /** The smallest number of bytes it can have. */
  int smallest() {
    switch (this) {
      case NONE:
        return 0;
      case INT16:
        return 2;
      case INT32:
        return 4;
      default:
        return 1;
    }
  }
}
