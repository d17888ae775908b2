package kafkarecords;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code stamp()}: identifies what the functions of a catalog were built for. The Python package compares it with its
 * own values.
 */
public final class Stamp extends Function<UTF8String> {
  /**
   * Increased with every change of what functions accept or return; kafka_records_engine.spark.jvm has the same number.
   */
  private static final int FORMAT = 3;

  Stamp(Asked asked) {
    super(asked, DataTypes.StringType);
    asked.allowOnly(java.util.Collections.emptyList());
  }

  /** The format, and the SHA-256 of the schemas. */
  public UTF8String invoke() {
    try {
      byte[] text = Schemas.text(asked.schemas).getBytes(StandardCharsets.UTF_8);
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(text);
      return UTF8String.fromString(FORMAT + String.format(" %064x", new BigInteger(1, digest)));
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error);
    }
  }
}
