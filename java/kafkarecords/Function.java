package kafkarecords;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;

/**
 * A function that is bound to the types of its arguments.
 *
 * <p>Catalyst calls {@code invoke} of the concrete class from generated code. Each task gets a copy, which contains the
 * requested options and builds everything else from them on the first call.
 */
abstract class Function<T> implements ScalarFunction<T>, Serializable {
  final Asked asked;
  private final DataType[] inputs;
  private final DataType result;

  Function(Asked asked, DataType result, DataType... inputs) {
    this.asked = asked;
    this.inputs = inputs;
    this.result = result;
  }

  @Override
  public DataType[] inputTypes() {
    return inputs.clone();
  }

  @Override
  public DataType resultType() {
    return result;
  }

  @Override
  public boolean isResultNullable() {
    return true;
  }

  @Override
  public String name() {
    return asked.text;
  }

  @Override
  public String canonicalName() {
    return asked.catalog + "." + asked.text;
  }

  /** Equal functions are equal expressions, of which Catalyst evaluates only one. */
  @Override
  public boolean equals(Object other) {
    if (other == null || other.getClass() != getClass()) {
      return false;
    }
    Function<?> that = (Function<?>) other;
    return canonicalName().equals(that.canonicalName())
        && asked.schemas.equals(that.asked.schemas)
        && Arrays.equals(inputs, that.inputs);
  }

  @Override
  public int hashCode() {
    return 31 * canonicalName().hashCode() + Arrays.hashCode(inputs);
  }

  @Override
  public String toString() {
    return canonicalName();
  }
}
