package judge;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** One random history: what happened in a world of its own, and what is asked about it. All follows from the seed. */
final class History {
    private static final long FIRST_START = 1_700_000_000_000L;
    private static final long LAST_START = 1_800_000_000_000L;
    private static final int CUTS = 4;

    private final long seed;
    private final String name;
    private final World world;
    private final long start;

    /** Lets it happen. */
    History(long seed) {
        this.seed = seed;
        name = String.format("%04d", seed);
        Randomness.seed(seed);
        Chance chance = new Chance(seed);
        start = FIRST_START + chance.spread(0, LAST_START - FIRST_START);
        world = new World(chance, new Clock(start));
        world.live((int) chance.spread(10, 500), 400);
    }

    /** Writes what happened, why, and Kafka's answers. */
    void write(Path folder) {
        List<ObjectNode> why = new ArrayList<>();
        write(folder, name, world.groups.log, why);
        if (world.share.log.end() > 0) {
            write(folder, name + "-share", world.share.log, why);
        }
        Json.write(folder.resolve(name + ".why.jsonl.gz"), why);
    }

    private void write(Path folder, String file, Log log, List<ObjectNode> why) {
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
            if (entry.why() != null) {
                cause.put("why", entry.why());
            }
            why.add(cause);
        }
        Recorded recorded = new Recorded(header, log);
        recorded.write(folder);
        recorded.answer(folder);
    }

    private ObjectNode header(String file, Log log) {
        ObjectNode header = Json.object().put("history", file).put("seed", seed).put("kafka", Release.NAME)
            .put("topic", log.topic).put("partition", 0)
            .put("start_ms", start).put("end_ms", world.clock.milliseconds());
        if (log == world.groups.log) {
            header.put("offsets_retention_ms", world.settings.retentionMs()).put("old_versions", world.isOld);
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
            moments.add(new Recorded.Moment(cut, log.entries.get((int) cut).timestamp(), world.topicsAt(log, cut)));
        }
        if (log.end() > 0) {
            moments.add(new Recorded.Moment(log.end() - 1, world.clock.milliseconds(), world.topics()));
        }
        return moments;
    }

    private static void topics(ArrayNode array, Topics topics) {
        for (Topics.Topic topic : topics.all()) {
            array.addObject().put("name", topic.name())
                .put("id", topic.id().toString()).put("partitions", topic.partitionCount());
        }
    }
}
