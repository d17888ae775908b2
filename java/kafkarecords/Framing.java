package kafkarecords;

/**
 * How the records of a topic begin: where their type and version are, and where the messages begin.
 *
 * <p>The rules, names and texts are those of kafka_records_runtime.records.framing.
 */
enum Framing {
  /** The key is an int16 record type and a message, the value an int16 version and a message. */
  COORDINATOR {
    @Override
    int type(byte[] key, byte[] value) {
      return key == null || key.length < PREFIX ? NONE : prefix(key);
    }

    @Override
    Undecodable unframed(byte[] key, byte[] value) {
      return key == null ? Undecodable.nullKey() : Undecodable.shortKey(key.length);
    }

    @Override
    Undecodable unknownType(byte[] value) {
      return null;
    }

    @Override
    long version(byte[] value) {
      if (value.length < PREFIX) {
        throw Undecodable.shortValue(value.length);
      }
      return numbered(prefix(value), PREFIX);
    }
  },

  /** There is no key. The value is a frame version, an api key and a version, each a varint, and a message. */
  METADATA {
    @Override
    int type(byte[] key, byte[] value) {
      if (key != null || value == null) {
        return NONE;
      }
      try {
        long frame = read(value, 0, "frame version");
        return number(frame) == FRAME_VERSION ? number(read(value, at(frame), "api key")) : NONE;
      } catch (Undecodable broken) {
        return NONE;
      }
    }

    @Override
    Undecodable unframed(byte[] key, byte[] value) {
      if (key != null) {
        return Undecodable.unexpectedKey(key.length);
      }
      if (value == null) {
        return Undecodable.nullValue();
      }
      try {
        long frame = read(value, 0, "frame version");
        if (number(frame) != FRAME_VERSION) {
          return Undecodable.unknownFrameVersion(number(frame));
        }
        read(value, at(frame), "api key");
        throw new IllegalStateException("the frame can be read");
      } catch (Undecodable broken) {
        return broken;
      }
    }

    @Override
    Undecodable unknownType(byte[] value) {
      int at = at(read(value, 0, "frame version"));
      return Undecodable.unknownApiKey(number(read(value, at, "api key")), at);
    }

    @Override
    long version(byte[] value) {
      int at = at(read(value, 0, "frame version"));
      return read(value, at(read(value, at, "api key")), "version");
    }
  };

  /** No record type: the bytes do not begin as they should. */
  static final int NONE = Integer.MIN_VALUE;

  /** The bytes of the int16 that keys and values of coordinators start with. */
  static final int PREFIX = 2;

  static final int FRAME_VERSION = 1;
  private static final int MOST_IN_FRAME = 32767;
  private static final int LONGEST_VARINT = 5;

  /** The framing of that name; null for none. */
  static Framing of(String name) {
    return name.isEmpty() ? null : valueOf(name.toUpperCase(java.util.Locale.ROOT));
  }

  /** The record type; NONE if there is none, and then {@code unframed} returns the error. */
  abstract int type(byte[] key, byte[] value);

  abstract Undecodable unframed(byte[] key, byte[] value);

  /** The error for a type that no record of the topic has; null if it is not an error. The value must have a type. */
  abstract Undecodable unknownType(byte[] value);

  /** The version of a value that has a type. Use {@code number} and {@code at} to unpack the result. */
  abstract long version(byte[] value);

  /** The int16 that a key or value starts with. It must have at least two bytes. */
  static int prefix(byte[] data) {
    return (short) (data[0] << 8 | data[1] & 0xFF);
  }

  /** The number in the result of a read. */
  static int number(long read) {
    return (int) (read >> 32);
  }

  /** The position of the next byte in the result of a read. */
  static int at(long read) {
    return (int) read;
  }

  private static long numbered(int number, int at) {
    return (long) number << 32 | at;
  }

  private static long read(byte[] value, int start, String part) {
    long found = 0;
    for (int index = 0; index < LONGEST_VARINT; index++) {
      int at = start + index;
      if (at >= value.length) {
        throw Undecodable.truncatedFrame(part, start, value.length);
      }
      found |= (long) (value[at] & 0x7F) << 7 * index;
      if (value[at] >= 0) {
        if (found > MOST_IN_FRAME) {
          String detail = "is " + found + ", more than the limit of " + MOST_IN_FRAME;
          throw Undecodable.invalidFrameNumber(part, start, detail);
        }
        return numbered((int) found, at + 1);
      }
    }
    throw Undecodable.invalidFrameNumber(part, start, "has more than " + LONGEST_VARINT + " bytes");
  }
}
