import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Kafka's own clients in one process, told what to do by lines of JSON on standard input.
 *
 * <p>A line is {@code {"id": 1, "do": "consume", "name": …}}, its answer {@code {"id": 1, "ok": …}} or
 * {@code {"id": 1, "failed": "why"}}. What clients notice by themselves is printed as {@code {"event": …, "at": ms}}.
 */
public final class Crew {
    static final ObjectMapper JSON = new ObjectMapper();
    private static PrintStream out;

    private final Map<String, Member> members = new ConcurrentHashMap<>();
    private final Ledger ledger = new Ledger();
    private final String bootstrap;
    private final Chief chief;

    private Crew(String bootstrap) {
        this.bootstrap = bootstrap;
        this.chief = new Chief(bootstrap);
    }

    public static void main(String[] arguments) throws Exception {
        out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // the output of libraries is not an answer
        Crew crew = new Crew(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode().put("id", asked.get("id").asInt());
            try {
                answer.set("ok", JSON.valueToTree(crew.done(asked)));
            } catch (Exception error) {
                answer.put("failed", String.valueOf(error));
            }
            say(answer);
        }
        Runtime.getRuntime().halt(0); // clients that still run must not leave their groups
    }

    static void event(String event, String name, Object detail) {
        ObjectNode line = JSON.createObjectNode().put("event", event).put("name", name);
        say(line.put("at", System.currentTimeMillis()).put("detail", String.valueOf(detail)));
    }

    private static void say(ObjectNode line) {
        synchronized (out) {
            out.println(line);
        }
    }

    private Object done(JsonNode asked) throws Exception {
        String name = asked.path("name").asText();
        switch (asked.get("do").asText()) {
            case "consume":
                return begun(name, new Reader(bootstrap, asked, ledger));
            case "share":
                return begun(name, new Sharer(bootstrap, asked, ledger));
            case "produce":
                return begun(name, new Writer(bootstrap, asked));
            case "copy":
                return begun(name, new Copier(bootstrap, asked, ledger));
            case "stop":
                members.remove(name).stop(asked.path("how").asText("leave"));
                return name;
            case "set":
                members.get(name).set(asked);
                return name;
            case "count":
                return members.get(name).count();
            case "ledger":
                return ledger.of(asked.get("group").asText());
            default:
                return chief.done(asked);
        }
    }

    private String begun(String name, Member member) {
        members.put(name, member);
        member.start();
        return name;
    }
}
