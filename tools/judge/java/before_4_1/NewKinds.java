package judge;

import java.util.List;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * No share groups and no streams groups before 4.1: share groups of 4.0 are early access, in records that no later
 * release reads (KIP-932), and its coordinators have no streams groups (KIP-1071).
 */
final class NewKinds {
    /** The kinds of groups that the release lacks. */
    static final Set<Feature> LACKING = Set.of(Feature.SHARE_GROUPS, Feature.STREAMS_GROUPS);

    NewKinds(World world) {}

    static void giveWarmups(GroupCoordinatorShard shard, Chance chance) {}

    Member shareMember(String group) {
        throw lacking();
    }

    Member streamsMember(String group, String instanceId) {
        throw lacking();
    }

    void writeShareState(String group) {}

    void snapshotColdPartitions() {}

    void prepareDeletion(List<String> groups) {}

    void topicDeleted(Uuid topic) {}

    void alterShareOffsets() {}

    void deleteShareOffsets() {}

    static JsonNode describeShareGroup(GroupCoordinatorShard shard, List<String> ids, long cut) {
        throw lacking();
    }

    static JsonNode describeStreamsGroup(GroupCoordinatorShard shard, List<String> ids, long cut) {
        throw lacking();
    }

    static List<ObjectNode> shareAnswers(Kafka kafka, Loaded loaded, Recorded.Moment moment, List<Long> snapshots) {
        throw lacking();
    }

    private static UnsupportedOperationException lacking() {
        return new UnsupportedOperationException("Kafka " + Release.NAME + " has no share groups and no streams groups");
    }
}
