package judge;

import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;

import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestPartition;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestTopic;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The answers of a loaded coordinator to requests that delete, and the tombstones that it would write. They are not
 * replayed, so its state does not change, and one coordinator can be asked about everything.
 */
final class Deletions {
    private final GroupCoordinatorShard shard;
    private final Supplier<ObjectNode> lines;

    /** `lines` makes the lines of the answers, which have their cut. */
    Deletions(GroupCoordinatorShard shard, Supplier<ObjectNode> lines) {
        this.shard = shard;
        this.lines = lines;
    }

    /** OffsetDelete of a group, for all partitions that it may have committed: partition numbers by topic. */
    void offsets(String group, TreeMap<String, TreeSet<Integer>> partitions) {
        ObjectNode line = lines.get().put("question", "delete_offsets").put("group", group);
        if (group.isEmpty()) {
            // GroupCoordinatorService does not call the shard.
            line.putObject("answer").put("error", Errors.INVALID_GROUP_ID.name());
            return;
        }
        var topics = new OffsetDeleteRequestData.OffsetDeleteRequestTopicCollection();
        partitions.forEach((topic, numbers) -> topics.add(new OffsetDeleteRequestTopic().setName(topic).setPartitions(
            numbers.stream().map(number -> new OffsetDeleteRequestPartition().setPartitionIndex(number)).toList())));
        OffsetDeleteRequestData request = new OffsetDeleteRequestData().setGroupId(group).setTopics(topics);
        try {
            var result = shard.deleteOffsets(asking(ApiKeys.OFFSET_DELETE), request);
            ArrayNode answer = line.putArray("answer");
            result.response().topics().forEach(topic -> topic.partitions().forEach(partition ->
                answer.addObject().put("topic", topic.name()).put("partition", partition.partitionIndex())
                    .put("error", Errors.forCode(partition.errorCode()).name())));
            tombstones(line, result.records());
        } catch (ApiException refused) {
            line.putObject("answer").put("error", Errors.forException(refused).name());
        }
    }

    /** DeleteGroups of a group, as after the deletion of its share state. */
    void group(String group) {
        ObjectNode line = lines.get().put("question", "delete_group").put("group", group);
        var result = shard.deleteGroups(asking(ApiKeys.DELETE_GROUPS), List.of(group));
        line.put("answer", Errors.forCode(result.response().find(group).errorCode()).name());
        tombstones(line, result.records());
    }

    private static Client asking(ApiKeys api) {
        return Client.of("judge", new byte[] {127, 0, 0, 1}, api);
    }

    private static void tombstones(ObjectNode line, List<CoordinatorRecord> records) {
        ArrayNode tombstones = Json.array();
        for (CoordinatorRecord record : records) {
            tombstones.addObject().put("type", Records.type(record))
                .set("key", Records.keyAsJson(record));
        }
        line.set("tombstones", Json.sorted(tombstones));
    }
}
