import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** A client that runs in its own thread until it is stopped. */
abstract class Member extends Thread {
    final String bootstrap;
    final JsonNode asked;
    volatile String stopping;
    /** The milliseconds that a record, or a round, takes. */
    volatile double pause;
    /** Whether the application hangs: it no longer calls its client. */
    volatile boolean stalled;
    volatile long count;

    Member(String bootstrap, JsonNode asked) {
        this.bootstrap = bootstrap;
        this.asked = asked;
        this.pause = asked.path("pause").asDouble(0);
        setDaemon(true);
    }

    final String label() {
        return asked.get("name").asText();
    }

    /** The properties of a client. Those in `config` have precedence. */
    final Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("client.id", asked.path("client").asText(label()));
        properties.put("reconnect.backoff.max.ms", "1000");
        properties.put("retry.backoff.max.ms", "500");
        asked.path("config").properties().forEach(each -> properties.put(each.getKey(), each.getValue().asText()));
        return properties;
    }

    final List<String> topics() {
        List<String> topics = new ArrayList<>();
        asked.path("topics").forEach(topic -> topics.add(topic.asText()));
        return topics;
    }

    void set(JsonNode changes) {
        pause = changes.path("pause").asDouble(pause);
        stalled = changes.path("stalled").asBoolean(stalled);
    }

    Object count() {
        return count;
    }

    /** Stops as `how` says: leave (close properly) or vanish (close the connections, as a killed process does). */
    final void stop(String how) throws InterruptedException {
        stopping = how;
        interruptIfStalled();
        join(15_000);
    }

    private void interruptIfStalled() {
        if (stalled) {
            stalled = false;
        }
    }

    final void rest(double milliseconds) {
        try {
            long nanos = (long) (milliseconds * 1_000_000);
            Thread.sleep(nanos / 1_000_000, (int) (nanos % 1_000_000));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public final void run() {
        while (stopping == null) {
            try {
                live();
                return;
            } catch (Exception error) {
                Crew.event("crashed", label(), error);
                if (!asked.has("restart")) {
                    return;
                }
                rest(asked.get("restart").asDouble());
            }
        }
    }

    /**
     * Runs until `stopping` is set. An exception ends the simulated process, which is started again after `restart` ms.
     */
    abstract void live() throws Exception;
}
