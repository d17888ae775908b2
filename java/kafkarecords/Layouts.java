package kafkarecords;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Derives the byte layout of one version of a message; like {@code kafka_records_runtime.schema.layout}. */
final class Layouts {
  private final Message message;
  private final int version;
  private final boolean keepsTags;
  private final Map<String, Layout> made = new HashMap<>();

  /** {@code keepsTags}: rows end with the tagged fields that the schemas do not define. */
  Layouts(Message message, int version, boolean keepsTags) {
    this.message = message;
    this.version = version;
    this.keepsTags = keepsTags && !message.flexible.isEmpty();
  }

  Layout of(Struct struct) {
    Layout known = made.get(struct.name);
    if (known == null) {
      made.put(struct.name, known = derived(struct));
    }
    return known;
  }

  private Layout derived(Struct struct) {
    int count = struct.fields.size();
    int fields = keepsTags ? count + 1 : count;
    Value[] body = new Value[count];
    Fallback[] fallbacks = new Fallback[count];
    boolean[] isVariable = new boolean[fields];
    List<int[]> tagged = new ArrayList<>();
    List<Value> tagValues = new ArrayList<>();
    List<int[]> misplaced = new ArrayList<>();
    for (int slot = 0; slot < count; slot++) {
      Field field = struct.fields.get(slot);
      Value.Type type = Value.Type.of(field.base);
      isVariable[slot] = field.isArray || type == null || type.isVariable();
      boolean isPresent = field.versions.has(version);
      if (isPresent && field.tag >= 0 && field.tagged.has(version)) {
        tagged.add(new int[] {field.tag, slot});
        tagValues.add(value(field, true));
      } else {
        body[slot] = isPresent ? value(field, false) : null;
        if (field.tag >= 0) {
          misplaced.add(new int[] {field.tag, slot});
        }
      }
      if (body[slot] == null) {
        fallbacks[slot] = Fallback.of(message, field, keepsTags);
      }
    }
    if (keepsTags) {
      isVariable[count] = true;
    }
    boolean isFlexible = message.flexible.has(version);
    return new Layout(
        struct, body, fallbacks, isVariable, isFlexible, keepsTags, tagged, tagValues, misplaced);
  }

  private Value value(Field field, boolean tagged) {
    boolean compact = tagged || field.flexible.has(version);
    boolean nullable = field.nullable.has(version);
    if (field.isArray) {
      return Value.array(single(field, compact, false, false), compact ? Head.UVARINT : Head.INT32, nullable);
    }
    return single(field, compact, nullable, tagged);
  }

  /** The layout of the field or, for an array, of an element. */
  private Value single(Field field, boolean compact, boolean nullable, boolean tagged) {
    Struct struct = message.struct(field);
    if (struct != null) {
      return Value.struct(of(struct), !nullable ? Head.NONE : tagged ? Head.UVARINT : Head.INT8);
    }
    Value.Type type = Value.Type.of(field.base);
    if (type.size > 0) {
      return Value.fixed(type);
    }
    Head length = compact ? Head.UVARINT : type == Value.Type.STRING ? Head.INT16 : Head.INT32;
    return Value.sized(type, length, nullable);
  }
}
