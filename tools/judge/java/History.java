package judge;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * One random history: what happened in a simulated world, and the questions about it. Everything follows from the seed.
 */
final class History {
    private static final long FIRST_START = 1_700_000_000_000L;
    private static final long LAST_START = 1_800_000_000_000L;
    private static final int CUTS = 4;

    private final long seed;
    private final String name;
    private final Features features;
    private final World world;
    private final long start;

    /** Simulates the history, with these features. */
    History(long seed, Features features) {
        this.seed = seed;
        this.features = features;
        name = String.format("%04d", seed);
        Randomness.seed(seed);
        Chance chance = new Chance(seed);
        start = FIRST_START + chance.spread(0, LAST_START - FIRST_START);
        world = new World(chance, features, new Clock(start));
        world.live((int) chance.spread(60, 500), 500);
    }

    /** Writes what happened and why and, with `isAnswered`, Kafka's answers. */
    void write(Path folder, boolean isAnswered) {
        List<ObjectNode> why = new ArrayList<>();
        List<Recorded> recorded = new ArrayList<>(List.of(recorded(name, world.groups.log, why)));
        if (world.share.log.end() > 0) {
            recorded.add(recorded(name + "-share", world.share.log, why));
        }
        for (Recorded each : recorded) {
            each.write(folder);
            if (isAnswered) {
                each.answer(folder);
            }
        }
        Json.write(folder.resolve(name + ".why.jsonl.gz"), why);
    }

    private Recorded recorded(String file, Log log, List<ObjectNode> why) {
        ObjectNode header = header(file, log);
        Loaded loaded = new Loaded(log);
        ArrayNode questions = header.putArray("questions");
        for (Recorded.Moment moment : moments(log)) {
            ObjectNode asked = questions.addObject().put("cut", moment.cut()).put("now_ms", moment.now());
            topics(asked.putArray("topics"), moment.topics());
            if (log == world.groups.log) {
                ArrayNode times = asked.putArray("cleanup_at_ms");
                Asked.cleanups(world.chance, loaded.upTo(moment.cut()), moment.now(), world.settings.retentionMs())
                    .forEach(times::add);
            } else {
                ArrayNode times = asked.putArray("snapshot_at_ms");
                int interval = world.settings.integer("share.coordinator.cold.partition.snapshot.interval.ms");
                Asked.coldSnapshots(moment.now(), interval).forEach(times::add);
            }
        }
        for (Log.Entry entry : log.entries) {
            ObjectNode cause = Json.object().put("history", file).put("offset", entry.offset()).put("call", entry.call());
            if (entry.write() != entry.batch()) {
                cause.put("write", entry.write());
            }
            if (entry.why() != null) {
                cause.put("why", entry.why());
            }
            why.add(cause);
        }
        return new Recorded(header, log);
    }

    private ObjectNode header(String file, Log log) {
        ObjectNode header = Json.object().put("history", file).put("seed", seed).put("features", features.toString())
            .put("kafka", Release.NAME)
            .put("topic", log.topic).put("partition", 0)
            .put("start_ms", start).put("end_ms", world.clock.milliseconds());
        if (log == world.groups.log) {
            header.put("offsets_retention_ms", world.settings.retentionMs()).put("old_versions", features.has(Feature.OLD_VERSIONS));
        }
        ObjectNode settings = header.putObject("settings");
        world.settings.properties().forEach(settings::put);
        return header;
    }

    /** A few ends of batches, and the end of the log. */
    private List<Recorded.Moment> moments(Log log) {
        TreeSet<Long> ends = new TreeSet<>();
        for (Log.Entry entry : log.entries) {
            if (entry.offset() == entry.batch() && entry.offset() > 0) {
                ends.add(entry.offset() - 1);
            }
        }
        TreeSet<Long> cuts = new TreeSet<>(world.chance.some(ends, 1, CUTS - 1));
        List<Recorded.Moment> moments = new ArrayList<>();
        for (long cut : cuts) {
            moments.add(new Recorded.Moment(cut, latest(log, cut), world.topicsAt(log, cut)));
        }
        if (log.end() > 0) {
            long now = Math.max(world.clock.milliseconds(), latest(log, log.end() - 1));
            moments.add(new Recorded.Moment(log.end() - 1, now, world.topics()));
        }
        return moments;
    }

    /** The newest time in the log up to `cut`. The broker that loads the log has the right time. */
    private static long latest(Log log, long cut) {
        return log.entries.stream().limit(cut + 1).mapToLong(Log.Entry::timestamp).max().orElseThrow();
    }

    private static void topics(ArrayNode array, Topics topics) {
        for (Topics.Topic topic : topics.all()) {
            array.addObject().put("name", topic.name())
                .put("id", topic.id().toString()).put("partitions", topic.partitionCount());
        }
    }
}
