package kafkarecords;

import java.util.ArrayList;
import java.util.List;

/** A struct, or the body of a message: its fields in the order of the spec. */
final class Struct {
  final String name;
  final List<Field> fields = new ArrayList<>();

  Struct(String name) {
    this.name = name;
  }
}
