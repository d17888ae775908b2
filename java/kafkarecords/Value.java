package kafkarecords;

/**
 * How a field, or an element of an array, lies in the bytes of one version (kafka_records_runtime.layout), and what
 * a reader has to know of it. All kinds are one class with a number, so that the reader is one switch, which the JVM
 * compiles to a jump; a switch over an enum looks the number up in two more places.
 */
final class Value {
  static final int BOOL = 0;
  static final int INT8 = 1;
  static final int INT16 = 2;
  static final int UINT16 = 3;
  static final int INT32 = 4;
  static final int UINT32 = 5;
  static final int INT64 = 6;
  static final int FLOAT64 = 7;
  static final int UUID = 8;
  static final int STRING = 9;
  static final int BYTES = 10;
  static final int ARRAY = 11;
  static final int STRUCT = 12;

  /** The types, in the order of their numbers. */
  enum Type {
    BOOL(1, 1),
    INT8(1, 1),
    INT16(2, 2),
    UINT16(2, 4),
    INT32(4, 4),
    UINT32(4, 8),
    INT64(8, 8),
    FLOAT64(8, 8),
    UUID(16, 8),
    STRING(-1, 8),
    BYTES(-1, 8),
    ARRAY(-1, 8),
    STRUCT(-1, 8);

    /** Bytes of a value that always takes as many, -1 for others. */
    final int size;
    /** Bytes of an element of an array of Spark's: the number, or where what has no fixed width is. */
    final int width;

    Type(int size, int width) {
      this.size = size;
      this.width = width;
    }

    /** Whether a row holds it after its fields: a uuid is a text there. */
    boolean isVariable() {
      return size < 0 || this == UUID;
    }

    /** The type of a primitive, as specs spell it; null for the name of a struct. */
    static Type of(String name) {
      switch (name) {
        case "bool":
          return BOOL;
        case "int8":
          return INT8;
        case "int16":
          return INT16;
        case "uint16":
          return UINT16;
        case "int32":
          return INT32;
        case "uint32":
          return UINT32;
        case "int64":
          return INT64;
        case "float64":
          return FLOAT64;
        case "uuid":
          return UUID;
        case "string":
          return STRING;
        case "bytes":
        case "records":
          return BYTES;
        default:
          return null;
      }
    }
  }

  final Type type;
  /** The number of the type. */
  final int code;
  final Head head;
  /** Whether the length or count is a varint. */
  final boolean isCompact;
  final boolean nullable;
  /** Of an array. */
  final Value element;
  /** Of a struct. */
  final Layout layout;
  /** The fewest bytes that a value can have. */
  final int smallest;

  private Value(Type type, Head head, boolean nullable, Value element, Layout layout, int smallest) {
    this.type = type;
    code = type.ordinal();
    this.head = head;
    isCompact = head == Head.UVARINT;
    this.nullable = nullable;
    this.element = element;
    this.layout = layout;
    this.smallest = smallest;
  }

  static Value fixed(Type type) {
    return new Value(type, Head.NONE, false, null, null, type.size);
  }

  static Value sized(Type type, Head length, boolean nullable) {
    return new Value(type, length, nullable, null, null, length.smallest());
  }

  static Value array(Value element, Head count, boolean nullable) {
    return new Value(Type.ARRAY, count, nullable, element, null, count.smallest());
  }

  /** A struct; one that may be null has a marker before it. */
  static Value struct(Layout layout, Head marker) {
    boolean nullable = marker != Head.NONE;
    return new Value(Type.STRUCT, marker, nullable, null, layout, nullable ? 1 : layout.smallest);
  }
}
