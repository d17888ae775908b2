package judge;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.common.message.ConsumerGroupDescribeResponseDataJsonConverter;
import org.apache.kafka.common.message.DescribeGroupsResponseDataJsonConverter;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopics;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponsePartitions;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseTopics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.timeline.SnapshotRegistry;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The answers of a group coordinator that has loaded a log up to a cut. No answer changes its state, so one coordinator
 * is asked everything.
 */
final class GroupAnswers {
    private static final Client ASKING = Client.of("judge", new byte[] {127, 0, 0, 1}, ApiKeys.DESCRIBE_GROUPS);

    private record Commit(String group, String topic, int partition) {}

    private final Loaded loaded;
    private final long cut;
    private final Clock clock;
    private final GroupCoordinatorShard shard;
    private final List<ObjectNode> answers = new ArrayList<>();

    /** Throws Refused. */
    GroupAnswers(Kafka kafka, Loaded loaded, Recorded.Moment moment) {
        this.loaded = loaded;
        cut = moment.cut();
        clock = new Clock(moment.now());
        SnapshotRegistry snapshots = new SnapshotRegistry(Release.LOGS);
        shard = kafka.groupCoordinator(clock, new Timers(clock), new Tasks(), snapshots);
        loaded.into(shard, cut, moment.topics());
        snapshots.idempotentCreateSnapshot(cut);
    }

    /** The lines for this cut. The times of clean-ups ascend. */
    List<ObjectNode> all(List<Long> cleanups) {
        var listed = new ArrayList<>(shard.listGroups(List.of(), List.of(), cut));
        listed.sort(Comparator.comparing(ListGroupsResponseData.ListedGroup::groupId));
        ObjectNode list = question("list_groups");
        ArrayNode groups = list.putArray("answer");
        for (var group : listed) {
            groups.addObject().put("groupId", group.groupId()).put("protocolType", group.protocolType())
                .put("groupState", group.groupState()).put("groupType", group.groupType());
        }
        for (var group : listed) {
            ObjectNode describe = question("describe").put("group", group.groupId()).put("group_type", group.groupType());
            JsonNode answer = description(group.groupId(), group.groupType());
            describe.set("answer", answer);
            if (group.groupType().equals("classic")) {
                question("open_members").put("group", group.groupId()).set("answer", Json.sorted(Opened.members(answer)));
            }
        }
        List<Commit> commits =
            loaded.upTo(cut).stream().map(GroupAnswers::commit).filter(Objects::nonNull).distinct().toList();
        TreeSet<String> names = new TreeSet<>(commits.stream().map(Commit::group).toList());
        for (String name : names) {
            for (boolean stable : new boolean[] {false, true}) {
                fetchAll(name, stable);
                fetch(name, stable, commits.stream().filter(commit -> commit.group().equals(name)).toList());
            }
        }
        cleanups.forEach(this::cleanup);
        listed.forEach(group -> names.add(group.groupId()));
        deletions(names, commits);
        return answers;
    }

    private ObjectNode question(String name) {
        ObjectNode line = Json.object().put("cut", cut).put("question", name);
        answers.add(line);
        return line;
    }

    /** The description, or an error: Kafka cannot always describe what a cleaner has left. */
    private JsonNode description(String group, String type) {
        try {
            return Json.sorted(description(List.of(group), type));
        } catch (IllegalStateException | NullPointerException error) {
            return Json.object().put("error", String.valueOf(error.getMessage()));
        }
    }

    private JsonNode description(List<String> ids, String type) {
        return switch (type) {
            case "classic" -> DescribeGroupsResponseDataJsonConverter.DescribedGroupJsonConverter.write(
                shard.describeGroups(ASKING, ids, cut).get(0), ApiKeys.DESCRIBE_GROUPS.latestVersion());
            case "consumer" -> ConsumerGroupDescribeResponseDataJsonConverter.DescribedGroupJsonConverter.write(
                shard.consumerGroupDescribe(ids, cut).get(0), ApiKeys.CONSUMER_GROUP_DESCRIBE.latestVersion());
            case "share" -> NewKinds.describeShareGroup(shard, ids, cut);
            case "streams" -> NewKinds.describeStreamsGroup(shard, ids, cut);
            default -> throw new IllegalArgumentException("A group is of a kind that is not known: " + type);
        };
    }

    private static Commit commit(CoordinatorRecord record) {
        OffsetCommitKey key = Records.committed(record);
        return key == null ? null : new Commit(key.group(), key.topic(), key.partition());
    }

    private void fetchAll(String group, boolean stable) {
        ObjectNode line = question("fetch_all_offsets").put("group", group).put("require_stable", stable);
        OffsetFetchRequestGroup request = new OffsetFetchRequestGroup().setGroupId(group).setTopics(null);
        line.set("answer", offsets(Cluster.fetchAll(shard, request, stable ? Long.MAX_VALUE : cut)));
    }

    private void fetch(String group, boolean stable, List<Commit> commits) {
        ObjectNode line = question("fetch_offsets").put("group", group).put("require_stable", stable);
        List<OffsetFetchRequestTopics> asked = commits.stream().map(commit -> new OffsetFetchRequestTopics()
            .setName(commit.topic()).setPartitionIndexes(List.of(commit.partition()))).toList();
        OffsetFetchRequestGroup request = new OffsetFetchRequestGroup().setGroupId(group).setTopics(asked);
        line.set("answer", offsets(shard.fetchOffsets(request, stable ? Long.MAX_VALUE : cut)));
    }

    private static JsonNode offsets(OffsetFetchResponseGroup response) {
        if (response.errorCode() != Errors.NONE.code()) {
            return Json.object().put("error", Errors.forCode(response.errorCode()).name());
        }
        record Found(String topic, OffsetFetchResponsePartitions partition) {}
        List<Found> found = new ArrayList<>();
        for (OffsetFetchResponseTopics topic : response.topics()) {
            topic.partitions().forEach(partition -> found.add(new Found(topic.name(), partition)));
        }
        found.sort(Comparator.comparing(Found::topic).thenComparing(each -> each.partition().partitionIndex()));
        ArrayNode offsets = Json.array();
        for (Found each : found) {
            OffsetFetchResponsePartitions partition = each.partition();
            ObjectNode offset = offsets.addObject().put("topic", each.topic())
                .put("partition", partition.partitionIndex()).put("offset", partition.committedOffset())
                .put("leader_epoch", partition.committedLeaderEpoch()).put("metadata", partition.metadata());
            if (partition.errorCode() != Errors.NONE.code()) {
                offset.put("error", Errors.forCode(partition.errorCode()).name());
            }
        }
        return offsets;
    }

    private void deletions(TreeSet<String> names, List<Commit> commits) {
        Map<String, TreeMap<String, TreeSet<Integer>>> committed = new HashMap<>();
        for (Commit commit : commits) {
            committed.computeIfAbsent(commit.group(), group -> new TreeMap<>())
                .computeIfAbsent(commit.topic(), topic -> new TreeSet<>()).add(commit.partition());
        }
        Deletions deletions = new Deletions(shard, () -> question(""));
        for (String name : names) {
            deletions.offsets(name, committed.getOrDefault(name, new TreeMap<>()));
            deletions.group(name);
        }
    }

    private void cleanup(long time) {
        ObjectNode line = question("next_cleanup").put("at_ms", time);
        ArrayNode tombstones = Json.array();
        clock.set(time);
        List<CoordinatorRecord> written;
        try {
            written = shard.cleanupGroupMetadata().records();
        } catch (UnsupportedOperationException error) {
            // A share group has no rule for offsets, and a cleaner may leave it offsets of the previous group.
            line.put("error", error.getMessage());
            return;
        }
        for (CoordinatorRecord record : written) {
            ObjectNode tombstone = tombstones.addObject().put("type", Records.type(record));
            tombstone.set("key", Records.keyAsJson(record));
        }
        line.set("tombstones", Json.sorted(tombstones));
    }
}
