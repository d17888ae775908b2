package judge;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterShareGroupOffsetsRequestData;
import org.apache.kafka.common.message.AlterShareGroupOffsetsRequestData.AlterShareGroupOffsetsRequestPartition;
import org.apache.kafka.common.message.AlterShareGroupOffsetsRequestData.AlterShareGroupOffsetsRequestTopic;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsRequestData;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsRequestData.DeleteShareGroupOffsetsRequestTopic;
import org.apache.kafka.common.message.ShareGroupDescribeResponseDataJsonConverter;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseDataJsonConverter;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Share groups and streams groups of a world, which coordinators have since 4.1, with what administrators do to them. */
final class NewKinds {
    /** The kinds of groups that the release lacks. */
    static final Set<Feature> LACKING = Set.of();

    final ShareState shareState;
    final Map<String, StreamsGroupHeartbeatRequestData.Topology> topologies = new HashMap<>();
    private final World world;
    private final Chance chance;

    NewKinds(World world) {
        this.world = world;
        chance = world.chance;
        shareState = new ShareState(world);
    }

    static void giveWarmups(GroupCoordinatorShard shard, Chance chance) {
        Warmups.give(shard, chance);
    }

    Member shareMember(String group) {
        return new ShareMember(world, group);
    }

    Member streamsMember(String group, String instanceId) {
        return new StreamsMember(world, group, Release.HAS_STATIC_STREAMS ? instanceId : null);
    }

    void writeShareState(String group) {
        shareState.write(group);
    }

    void snapshotColdPartitions() {
        shareState.snapshotColdPartitions();
    }

    /** What a broker does before it deletes groups. */
    void prepareDeletion(List<String> groups) {
        var shared = world.groups.call("sharePartitionDeleteRequests", shard -> shard.sharePartitionDeleteRequests(groups));
        if (shared != null) {
            shared.values().stream().filter(each -> each.getValue() == Errors.NONE)
                .forEach(each -> shareState.delete(each.getKey()));
        }
        Release.forgetTopologies(world, groups);
    }

    void topicDeleted(Uuid topic) {
        world.groups.call("maybeCleanupShareGroupState", shard -> shard.maybeCleanupShareGroupState(Set.of(topic)));
        shareState.topicsDeleted(Set.of(topic));
    }

    void alterShareOffsets() {
        String group = world.anyGroup();
        var topics = new AlterShareGroupOffsetsRequestData.AlterShareGroupOffsetsRequestTopicCollection();
        for (String name : chance.some(world.allTopicNames(), 1, 2)) {
            topics.add(new AlterShareGroupOffsetsRequestTopic().setTopicName(name).setPartitions(List.of(
                new AlterShareGroupOffsetsRequestPartition().setPartitionIndex(0).setStartOffset(chance.between(0, 50)))));
        }
        var request = new AlterShareGroupOffsetsRequestData().setGroupId(group).setTopics(topics);
        var altered = world.groups.call("alterShareGroupOffsets", shard -> shard.alterShareGroupOffsets(group, request));
        if (altered != null && altered.getValue().groupTopicPartitionData() != null) {
            shareState.initialize(altered.getValue());
        }
    }

    void deleteShareOffsets() {
        String group = chance.is(20) ? world.anyGroup() : world.anyGroupOf("share");
        var request = new DeleteShareGroupOffsetsRequestData().setGroupId(group).setTopics(
            chance.some(world.allTopicNames(), 1, 5).stream()
                .map(name -> new DeleteShareGroupOffsetsRequestTopic().setTopicName(name)).toList());
        var initiated = world.groups.call(
            "initiateDeleteShareGroupOffsets", shard -> shard.initiateDeleteShareGroupOffsets(group, request)
        );
        if (initiated == null || initiated.deleteStateRequestParameters() == null) {
            return;
        }
        shareState.delete(initiated.deleteStateRequestParameters());
        Map<Uuid, String> deleted =
            initiated.deleteStateRequestParameters().groupTopicPartitionData().topicsData().stream()
                .filter(topic -> world.topics().withId(topic.topicId()) != null)
                .collect(Collectors.toMap(
                    topic -> topic.topicId(), topic -> world.topics().withId(topic.topicId()).name()));
        world.groups.call("completeDeleteShareGroupOffsets", shard -> shard.completeDeleteShareGroupOffsets(
            group, deleted, new ArrayList<>(initiated.errorTopicResponseList())));
    }

    static JsonNode describeShareGroup(GroupCoordinatorShard shard, List<String> ids, long cut) {
        return ShareGroupDescribeResponseDataJsonConverter.DescribedGroupJsonConverter.write(
            shard.shareGroupDescribe(ids, cut).get(0), ApiKeys.SHARE_GROUP_DESCRIBE.latestVersion());
    }

    static JsonNode describeStreamsGroup(GroupCoordinatorShard shard, List<String> ids, long cut) {
        return StreamsGroupDescribeResponseDataJsonConverter.DescribedGroupJsonConverter.write(
            Release.described(shard.streamsGroupDescribe(ids, cut)).get(0), ApiKeys.STREAMS_GROUP_DESCRIBE.latestVersion());
    }

    /** The answers of a share coordinator. Raises Refused. */
    static List<ObjectNode> shareAnswers(Kafka kafka, Loaded loaded, Recorded.Moment moment, List<Long> snapshots) {
        return new ShareAnswers(kafka, loaded, moment).all(snapshots);
    }
}
