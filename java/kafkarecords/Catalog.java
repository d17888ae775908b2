package kafkarecords;

import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The functions of a generated package. A session gets them with one setting:
 *
 * <pre>
 *   spark.sql.catalog.kafka_records = kafkarecords.Catalog
 * </pre>
 *
 * <p>The schemas of any package except the one in the jar are passed, packed, in {@code
 * spark.sql.catalog.NAME.schemas}.
 */
public final class Catalog implements FunctionCatalog {
  private String name;
  private String schemas = Schemas.IN_THE_JAR;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    schemas = options.getOrDefault("schemas", Schemas.IN_THE_JAR);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    Schemas read = Schemas.of(schemas);
    Set<String> names = new TreeSet<>(); // a metadata record has the same name as its message
    names.add("stamp");
    for (String message : read.messages.keySet()) {
      names.add("from_" + message);
      names.add("to_" + message);
    }
    for (String record : read.records.keySet()) {
      names.add("from_" + record);
    }
    for (String topic : read.topics.keySet()) {
      names.add("decode_" + topic);
    }
    return names.stream().map(each -> Identifier.of(new String[0], each)).toArray(Identifier[]::new);
  }

  @Override
  public UnboundFunction loadFunction(Identifier identifier) {
    Asked asked = new Asked(schemas, name, identifier);
    return new Unbound(asked);
  }

  private static final class Unbound implements UnboundFunction {
    private final Asked asked;

    Unbound(Asked asked) {
      this.asked = asked;
    }

    @Override
    public String name() {
      return asked.text;
    }

    @Override
    public String description() {
      return asked.catalog + "." + asked.function;
    }

    @Override
    public BoundFunction bind(StructType given) {
      Schemas read = asked.read();
      String function = asked.function;
      DataType[] types = new DataType[given.size()];
      for (int at = 0; at < types.length; at++) {
        types[at] = given.fields()[at].dataType();
      }
      if (function.equals("stamp")) {
        return new Stamp(asked);
      }
      if (function.startsWith("decode_") && read.topics.containsKey(function.substring(7))) {
        DataType[] inputs = decodeInputs(types);
        return new DecodeRecords(asked, function.substring(7), inputs);
      }
      if (function.startsWith("from_")) {
        String rest = function.substring(5);
        if (read.records.containsKey(rest) && types.length == 2) {
          return new FromRecord(asked, read.records.get(rest));
        }
        if (read.messages.containsKey(rest)) {
          if (types.length == 1) {
            return new FromMessage(asked, read.messages.get(rest));
          }
          if (types.length == 2) {
            return new FromMessage.OfVersion(asked, read.messages.get(rest));
          }
        }
      }
      if (function.startsWith("to_") && read.messages.containsKey(function.substring(3))) {
        Message message = read.messages.get(function.substring(3));
        if (types.length == 1) {
          return new ToMessage(asked, message, types[0]);
        }
        if (types.length == 2) {
          return new ToMessage.OfVersion(asked, message, types[0]);
        }
      }
      throw asked.wrong("there is no such function of " + types.length + " arguments; SHOW FUNCTIONS lists them");
    }

    private DataType[] decodeInputs(DataType[] given) {
      DataType[] all = {
        DataTypes.BinaryType,
        DataTypes.BinaryType,
        DataTypes.BooleanType,
        DataTypes.BooleanType,
        DataTypes.StringType,
        DataTypes.IntegerType,
        DataTypes.LongType
      };
      if (given.length != 2 && given.length != 4 && given.length != all.length) {
        throw asked.wrong("give it key and value, and after them whether the row is a control record and whether it is of another topic");
      }
      return java.util.Arrays.copyOf(all, given.length);
    }
  }
}
