package kafkarecords;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.InflaterInputStream;

/**
 * The messages and records of a generated package, read from its {@code spark/jvm_schemas.txt}.
 *
 * <p>Keywords and values are described in kafka_records_codegen.products.jvm_schemas, which writes the text.
 */
final class Schemas {
  /** Stands for the text of the package that is in the jar. */
  static final String IN_THE_JAR = "";

  private static final Map<String, Schemas> READ = new ConcurrentHashMap<>();

  /** The messages by their name in functions, in the order of the text. */
  final Map<String, Message> messages = new LinkedHashMap<>();
  /** The records by their name in functions. */
  final Map<String, Record> records = new LinkedHashMap<>();
  /** The records of each topic, by the name of its folder with {@code _} instead of {@code /}. */
  final Map<String, List<Record>> topics = new LinkedHashMap<>();

  private Schemas(String text) {
    Map<String, Message> inFolder = new HashMap<>();
    List<Message> all = new ArrayList<>();
    List<Record> ofTopic = new ArrayList<>();
    Framing framing = null;
    Message message = null;
    Struct struct = null;
    for (String line : text.split("\n")) {
      String[] values = values(line);
      switch (values[0]) {
        case "folder":
          inFolder.clear();
          ofTopic = new ArrayList<>();
          framing = Framing.of(values[2]);
          topics.put(values[1].replace('/', '_'), ofTopic);
          break;
        case "message":
          message = new Message(values);
          all.add(message);
          messages.put(message.inFunctions, message);
          inFolder.put(message.name, message);
          break;
        case "note":
          message.addNote(values);
          break;
        case "struct":
          struct = new Struct(values[1]);
          message.add(struct);
          break;
        case "field":
          struct.fields.add(new Field(values));
          break;
        case "record":
          Record record = new Record(values, framing, inFolder.get(values[4]), inFolder.get(values[5]));
          records.put(record.column, record);
          ofTopic.add(record);
          break;
        default: // a comment
      }
    }
    all.forEach(Message::whole);
    topics.values().removeIf(List::isEmpty);
  }

  /** The schemas of a package, from base64 of the deflated text, or IN_THE_JAR. */
  static Schemas of(String packed) {
    return READ.computeIfAbsent(packed, each -> new Schemas(text(each)));
  }

  /** The text that {@code of} reads. */
  static String text(String packed) {
    return packed.equals(IN_THE_JAR) ? inTheJar() : unpacked(packed);
  }

  private static String inTheJar() {
    String name = "jvm_schemas.txt";
    try (InputStream stream = Schemas.class.getResourceAsStream(name)) {
      if (stream == null) {
        throw new IllegalStateException("the jar of kafka-records lacks " + name + ": build it again with make jar");
      }
      return read(stream);
    } catch (IOException error) {
      throw new IllegalStateException("the jar of kafka-records cannot be read: " + error, error);
    }
  }

  private static String unpacked(String packed) {
    byte[] deflated = Base64.getDecoder().decode(packed);
    try (InputStream stream = new InflaterInputStream(new java.io.ByteArrayInputStream(deflated))) {
      return read(stream);
    } catch (IOException error) {
      throw new IllegalArgumentException("the setting with the schemas of a package is damaged: " + error, error);
    }
  }

  private static String read(InputStream stream) throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    byte[] buffer = new byte[8192];
    for (int count = stream.read(buffer); count >= 0; count = stream.read(buffer)) {
      all.write(buffer, 0, count);
    }
    return new String(all.toByteArray(), StandardCharsets.UTF_8);
  }

  private static String[] values(String line) {
    String[] values = line.split("\t", -1);
    for (int at = 0; at < values.length; at++) {
      if (values[at].indexOf('\\') >= 0) {
        values[at] = unescaped(values[at]);
      }
    }
    return values;
  }

  /** Decodes the escapes of the text, which are those of Python, for characters that must not appear as they are. */
  private static String unescaped(String text) {
    StringBuilder out = new StringBuilder();
    for (int at = 0; at < text.length(); at++) {
      char next = text.charAt(at);
      if (next != '\\') {
        out.append(next);
        continue;
      }
      at++;
      char escaped = text.charAt(at);
      int digits = escaped == 'x' ? 2 : escaped == 'u' ? 4 : escaped == 'U' ? 8 : 0;
      if (digits > 0) {
        out.appendCodePoint(Integer.parseInt(text.substring(at + 1, at + 1 + digits), 16));
        at += digits;
      } else {
        out.append(escaped == 't' ? '\t' : escaped == 'n' ? '\n' : escaped == 'r' ? '\r' : escaped);
      }
    }
    return out.toString();
  }
}
