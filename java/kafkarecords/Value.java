package kafkarecords;

/**
 * The layout of a field, or of an element of an array, in one version (kafka_records_runtime.schema.layout), with
 * everything that a reader needs. All kinds are one class with a number, so that the reader is one switch, which the
 * JVM compiles to a jump. A switch over an enum would need two more lookups of the number.
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

    /** The size in bytes if it is fixed; otherwise -1. */
    final int size;
    /**
     * The bytes of an element in one of Spark's arrays: the number, or the position of a value without a fixed width.
     */
    final int width;

    Type(int size, int width) {
      this.size = size;
      this.width = width;
    }

    /** Whether a row stores it after its fields. (A uuid is stored there as text.) */
    boolean isVariable() {
      return size < 0 || this == UUID;
    }

    /** The type of a primitive, by its name in specs; null for the name of a struct. */
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
  /** The element of an array. */
  final Value element;
  /** The layout of a struct. */
  final Layout layout;
  /** The smallest number of bytes of a value. */
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

  /** A struct. If it may be null, a marker precedes it. */
  static Value struct(Layout layout, Head marker) {
    boolean nullable = marker != Head.NONE;
    return new Value(Type.STRUCT, marker, nullable, null, layout, nullable ? 1 : layout.smallest);
  }
}
