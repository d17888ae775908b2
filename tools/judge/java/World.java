package judge;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.IntStream;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.timeline.SnapshotRegistry;

/** A small cluster: two coordinators, topics, clients, and one clock for all of them. */
final class World {
    private static final int MAXIMAL_TOPIC_NAME = 249;
    private static final List<String> TOPIC_NAMES =
        List.of("orders", "depots", "a", "T", "payments_v2", "parcels.eu-west", "geo.points", "not-there-yet");
    private static final List<String> GROUP_NAMES = List.of(
        "g", "G", "0", "null", "a", "a:b,c", "new\nline", "tab\tand \"quote\"", "team.analytics.v2", "группа", "组😀",
        "UPPER", "-dash", "..", " blank ", "\u0000zero", "<b>&amp;</b>", "$(id)", "=1+1", "very-long-" + "g".repeat(180)
    );

    private static final Map<Feature, String> KINDS = Map.of(
        Feature.CLASSIC_GROUPS, "classic", Feature.CONNECT_GROUPS, "connect", Feature.CONSUMER_GROUPS, "consumer",
        Feature.SHARE_GROUPS, "share", Feature.STREAMS_GROUPS, "streams"
    );

    final Chance chance;
    final Features features;
    final Clock clock;
    final Settings settings;
    final Kafka kafka;
    final Living<GroupCoordinatorShard> groups;
    final Living<ShareCoordinatorShard> share;
    final Commits commits;
    final NewKinds newKinds;
    final List<String> groupNames;
    private final Admin admin;
    private final List<Member> members = new ArrayList<>();
    private final List<String> possibleKinds;
    private final Map<String, String> kinds = new HashMap<>();
    /** The topics from an offset on, by log. */
    private final Map<Log, TreeMap<Long, Topics>> before = new HashMap<>();
    private Topics topics = Topics.NONE;

    World(Chance chance, Features features, Clock clock) {
        this.chance = chance;
        this.features = features;
        this.clock = clock;
        settings = Settings.random(chance, features);
        kafka = new Kafka(settings.properties());
        groups = groupCoordinator();
        share = shareCoordinator();
        commits = new Commits(this);
        newKinds = new NewKinds(this);
        admin = new Admin(this);
        possibleKinds = features.on().stream().sorted().filter(KINDS::containsKey).map(KINDS::get).toList();
        groupNames = chance.some(GROUP_NAMES, possibleKinds.size(), possibleKinds.size() + 1);
        for (int number = 0; number < groupNames.size(); number++) {
            kinds.put(groupNames.get(number), possibleKinds.get(number % possibleKinds.size()));
        }
        for (String name : chance.some(TOPIC_NAMES.subList(0, TOPIC_NAMES.size() - 1), 2, 6)) {
            topics = topics.with(new Topics.Topic(name, chance.uuid(), chance.between(1, 5)));
        }
        remember();
        Cluster.load(groups.shard, topics);
        Cluster.load(share.shard, topics);
    }

    private Living<GroupCoordinatorShard> groupCoordinator() {
        Timers timers = new Timers(clock);
        Tasks tasks = new Tasks();
        Log log = Recorded.emptyLog(Kafka.OFFSETS);
        Function<CoordinatorRecord, List<CoordinatorRecord>> asWritten =
            features.has(Feature.OLD_VERSIONS) ? new OldVersions(chance, this::topics) : List::of;
        GroupCoordinatorShard shard = kafka.groupCoordinator(clock, timers, tasks, new SnapshotRegistry(Release.LOGS));
        if (features.has(Feature.WARM_UP_TASKS)) {
            NewKinds.giveWarmups(shard, chance);
        }
        return new Living<>(shard, log, clock, timers, tasks, asWritten, new Causes(), batches());
    }

    private Living<ShareCoordinatorShard> shareCoordinator() {
        Timers timers = new Timers(clock);
        Tasks tasks = new Tasks();
        Log log = Recorded.emptyLog(Kafka.SHARE_STATE);
        return new Living<>(
            kafka.shareCoordinator(clock, timers, tasks, new SnapshotRegistry(Release.LOGS)), log, clock, timers, tasks, List::of, new Causes(),
            batches()
        );
    }

    private Batches batches() {
        return new Batches(chance, features.has(Feature.SHARED_BATCHES));
    }

    Topics topics() {
        return topics;
    }

    /** Simulates until the log has this many entries, or after `steps` steps. */
    void live(int entries, int steps) {
        for (int step = 0; step < steps && groups.log.end() < entries; step++) {
            step();
            while (chance.is(80) && groups.runTask()) {
                // Assignments and regular expressions are mostly computed at once.
            }
        }
        if (chance.is(30)) {
            pass(chance.spread(1, 20 * settings.retentionMs()));
        }
    }

    private void step() {
        int choice = chance.between(0, 99);
        if (choice < 16) {
            join();
        } else if (choice < 52) {
            actAsAGroup();
        } else if (choice < 63) {
            commits.commitAlone();
        } else if (choice < 69) {
            commits.endTransaction();
        } else if (choice < 77) {
            admin.act();
        } else if (choice < 82) {
            groupNames.forEach(newKinds::writeShareState);
        } else if (choice < 84) {
            newKinds.snapshotColdPartitions();
        } else {
            pass();
        }
    }

    /** Mostly short times, so that members with heartbeats stay in their groups. */
    private void pass() {
        if (features.has(Feature.CLOCK_JUMPS) && chance.is(30)) {
            jump();
        }
        int session = settings.integer("group.consumer.session.timeout.ms");
        int choice = chance.between(0, 99);
        pass(chance.spread(0, choice < 70 ? session / 3 : choice < 90 ? 2L * session : 2 * settings.retentionMs()));
    }

    /** The clock was wrong, or the partition moves to a broker with another one. */
    private void jump() {
        boolean isBack = chance.is(70);
        clock.jump(isBack ? -chance.spread(1, settings.retentionMs()) : chance.spread(1, 4 * settings.retentionMs()));
    }

    private void join() {
        String group = anyGroup();
        // A group mostly keeps its kind.
        String kind = kinds.get(group);
        if (chance.is(10)) {
            kind = chance.oneOf(possibleKinds);
            kinds.put(group, kind);
        }
        if (features.hasAnyOf(Feature.CONVERSIONS, Feature.DOWNGRADES) && List.of("classic", "consumer").contains(kind)) {
            // Members of both protocols meet in one group, which is converted from one kind to the other.
            kind = chance.is(60) ? kind : kind.equals("classic") ? "consumer" : "classic";
        }
        boolean isStatic = features.has(Feature.STATIC_MEMBERS) && chance.is(50);
        String instance = isStatic ? "static-" + chance.between(0, 2) : null;
        Member member = switch (kind) {
            case "classic" -> new ClassicMember(this, group, instance, "consumer");
            case "connect" -> new ClassicMember(this, group, instance, chance.of("connect", "sr"));
            case "consumer" -> new ConsumerMember(this, group, instance);
            case "share" -> newKinds.shareMember(group);
            default -> newKinds.streamsMember(group, instance);
        };
        members.add(member);
        member.heartbeat();
    }

    private void actAsAGroup() {
        Member one = chance.oneOf(members);
        if (one == null) {
            return;
        }
        one.act();
        for (Member other : List.copyOf(members)) {
            if (other != one && other.group.equals(one.group) && chance.is(50)) {
                other.heartbeat();
            }
        }
        members.removeIf(member -> member.isGone);
    }

    /** Lets time pass, in a few parts; after each, most members send a heartbeat. */
    private void pass(long milliseconds) {
        long end = clock.elapsed() + milliseconds;
        int parts = chance.between(1, 4);
        for (int part = 1; part <= parts; part++) {
            long until = end - milliseconds * (parts - part) / parts;
            runTimers(until);
            for (Member member : List.copyOf(members)) {
                if (chance.is(part < parts ? 60 : 30)) {
                    member.heartbeat();
                }
            }
        }
        members.removeIf(member -> member.isGone);
    }

    private void runTimers(long until) {
        while (groups.runTimer(until) || share.runTimer(until)) {
            // Each of them may have made others.
        }
        clock.set(Math.max(clock.elapsed(), until));
    }

    String anyGroup() {
        return chance.oneOf(groupNames);
    }

    /** A group that is mostly of this kind; any group if there is none. */
    String anyGroupOf(String kind) {
        List<String> found = groupNames.stream().filter(group -> kind.equals(kinds.get(group))).toList();
        return found.isEmpty() ? anyGroup() : chance.oneOf(found);
    }

    /** Names to subscribe to or commit for: mostly of existing topics. */
    List<String> someTopicNames() {
        List<String> names = chance.some(topics.names().stream().sorted().toList(), 1, 3);
        if (chance.is(15)) {
            names.add("not-there-yet");
        }
        return names;
    }

    /** The names of all topics that exist, existed, or may exist. */
    List<String> allTopicNames() {
        List<String> names = new ArrayList<>(TOPIC_NAMES);
        topics.names().stream().sorted().filter(name -> !names.contains(name)).forEach(names::add);
        return names;
    }

    List<TopicPartition> partitionsOf(List<String> names) {
        return names.stream().filter(name -> topics.named(name) != null).flatMap(
            name -> IntStream.range(0, topics.named(name).partitionCount()).mapToObj(n -> new TopicPartition(name, n))
        ).toList();
    }

    /** The topics that existed when the log was written up to `cut`. */
    Topics topicsAt(Log log, long cut) {
        return before.get(log).floorEntry(cut).getValue();
    }

    private void remember() {
        for (Log log : List.of(groups.log, share.log)) {
            before.computeIfAbsent(log, key -> new TreeMap<>()).put(log.end(), topics);
        }
    }

    static boolean isTopicName(String name) {
        return name.length() <= MAXIMAL_TOPIC_NAME && name.matches("[a-zA-Z0-9._-]+");
    }

    void createTopic(String name, int partitions) {
        if (topics.named(name) == null) {
            change(topics.with(new Topics.Topic(name, chance.uuid(), partitions)));
        }
    }

    void change(Topics changed) {
        Topics before = topics;
        topics = changed;
        remember();
        Cluster.change(groups.shard, before, changed);
        Cluster.change(share.shard, before, changed);
    }
}
