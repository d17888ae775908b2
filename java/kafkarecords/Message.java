package kafkarecords;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A message: its structs, its versions, and the readers that were built for some versions. */
final class Message {
  /** What precedes the message in the bytes that its functions read. */
  enum Kind {
    /** An int16 record type; a key has version 0. */
    KEY,
    /** An int16 version. */
    VALUE,
    /** The frame of a metadata record. */
    RECORD,
    /** An int16 version. For some messages, an unknown version is read as the highest known one. */
    MESSAGE
  }

  final String name;
  /** The message's name in snake case, as used in functions. */
  final String inFunctions;
  final int lowest;
  final int highest;
  final Range flexible;
  final Kind kind;
  /** The record type of keys, values and records; -1 for other messages. */
  final int recordType;
  final boolean newerAsHighest;
  private final Map<String, Struct> structs = new HashMap<>();
  private final List<String[]> notes = new ArrayList<>();
  private Struct root;
  private Secrets secrets;
  private volatile Layout[] plain;
  private volatile Layout[] withUnknownTags;

  Message(String[] line) {
    name = line[1];
    inFunctions = line[2];
    lowest = Integer.parseInt(line[3]);
    highest = Integer.parseInt(line[4]);
    flexible = Range.of(line[5]);
    kind = Kind.valueOf(line[6].toUpperCase(java.util.Locale.ROOT));
    recordType = line[7].isEmpty() ? -1 : Integer.parseInt(line[7]);
    newerAsHighest = line[8].equals("1");
  }

  void add(Struct struct) {
    structs.put(struct.name, struct);
    root = struct; // the body is the last struct
  }

  void addNote(String[] line) {
    notes.add(line);
  }

  Struct root() {
    return root;
  }

  /** The message's fields that may be secrets; null for none. */
  Secrets secrets() {
    return secrets;
  }

  /** Must be called after all structs have been added. */
  void whole() {
    secrets = Secrets.of(this);
  }

  /** The struct type of a field; null for a primitive. */
  Struct struct(Field field) {
    return structs.get(field.base);
  }

  boolean has(int version) {
    return lowest <= version && version <= highest;
  }

  /** The remark that an error about {@code version} appends; empty for none. */
  String note(int version) {
    for (String[] note : notes) {
      if (Integer.parseInt(note[1]) <= version && version <= Integer.parseInt(note[2])) {
        return note[3];
      }
    }
    return "";
  }

  /** The byte layout of the version, which the message must have. */
  Layout layout(int version, boolean keepsTags) {
    Layout[] made = keepsTags ? withUnknownTags : plain;
    if (made == null) {
      made = new Layout[highest - lowest + 1];
      for (int each = lowest; each <= highest; each++) {
        made[each - lowest] = new Layouts(this, each, keepsTags).of(root);
      }
      if (keepsTags) {
        withUnknownTags = made;
      } else {
        plain = made;
      }
    }
    return made[version - lowest];
  }

  @Override
  public String toString() {
    return name;
  }
}
