package kafkarecords;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Spark's column types for messages, like {@code spark_type} in kafka_records_engine.spark.spark_types. */
final class SparkTypes {
  static final String UNKNOWN_TAGS = "unknown_tagged_fields";

  static final DataType TAGS =
      DataTypes.createArrayType(
          new StructType()
              .add("tag", DataTypes.IntegerType, false)
              .add("data", DataTypes.BinaryType, false),
          false);

  private final Message message;
  private final boolean keepsTags;
  private final boolean isCommented;

  private SparkTypes(Message message, boolean keepsTags, boolean isCommented) {
    this.message = message;
    this.keepsTags = keepsTags && !message.flexible.isEmpty();
    this.isCommented = isCommented;
  }

  /** Every field of every version, in the order of the spec. With comments, each has its description from the spec. */
  static StructType of(Message message, boolean keepsTags, boolean isCommented) {
    return new SparkTypes(message, keepsTags, isCommented).of(message.root(), new ArrayList<>());
  }

  static StructType of(Record record, boolean keepsTags, boolean isCommented) {
    StructType made = new StructType();
    if (record.key != null) {
      made = made.add("key", of(record.key, keepsTags, isCommented), true);
    }
    return made.add("value", of(record.value, keepsTags, isCommented), true);
  }

  private StructType of(Struct struct, List<String> above) {
    if (above.contains(struct.name)) {
      String detail = ": " + struct.name + " contains itself, which no column type allows";
      throw new UnsupportedOperationException(message + detail);
    }
    List<String> inner = new ArrayList<>(above);
    inner.add(struct.name);
    StructType made = new StructType();
    for (Field field : struct.fields) {
      Struct held = message.struct(field);
      DataType one = held == null ? primitive(field.base) : of(held, inner);
      DataType type = field.isArray ? DataTypes.createArrayType(one, false) : one;
      made = made.add(new StructField(field.name, type, field.canBeNull(), comment(field)));
    }
    return keepsTags ? made.add(UNKNOWN_TAGS, TAGS, false) : made;
  }

  private Metadata comment(Field field) {
    return isCommented && !field.about.isEmpty()
        ? new MetadataBuilder().putString("comment", field.about).build()
        : Metadata.empty();
  }

  static DataType primitive(String base) {
    Value.Type type = Value.Type.of(base);
    if (type == null) {
      throw new UnsupportedOperationException("no column can hold the type " + base);
    }
    switch (type) {
      case BOOL:
        return DataTypes.BooleanType;
      case INT8:
        return DataTypes.ByteType;
      case INT16:
        return DataTypes.ShortType;
      case UINT16:
      case INT32:
        return DataTypes.IntegerType;
      case UINT32:
      case INT64:
        return DataTypes.LongType;
      case FLOAT64:
        return DataTypes.DoubleType;
      case BYTES:
        return DataTypes.BinaryType;
      default:
        return DataTypes.StringType;
    }
  }
}
