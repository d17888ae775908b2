package judge;

import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;

/** The causes of tombstones, in the words of `why` in a history. */
final class Causes {
    private static final short GROUP = 2;
    private static final short CONSUMER_GROUP = 3;
    private static final short TOPICS = 4;
    private static final short REGULAR_EXPRESSION = 16;
    private static final short CONSUMER_MEMBER = 5;
    private static final short STREAMS_GROUP = 17;
    private static final Set<Short> GROUPS = Set.of(GROUP, CONSUMER_GROUP, STREAMS_GROUP);
    private static final Set<Short> OFFSETS = Set.of((short) 0, (short) 1);

    /** Calls whose tombstones all have the same cause. */
    private static final Map<String, String> OF_CALL = Map.of(
        "deleteGroups", "group_deleted",
        "deleteOffsets", "offset_deleted",
        "onTopicsDeleted", "topic_deleted",
        "topic_deleted", "topic_deleted",
        "deleteState", "state_deleted"
    );

    /**
     * Calls that remove a member from its group. When the last member of the newer protocol leaves, the kind of the
     * group may change.
     */
    private static final Map<String, String> OF_LEAVING = Map.of(
        "leave", "member_left",
        "timer session_timeout", "session_timeout",
        "timer rebalance_timeout", "rebalance_timeout",
        "timer classic_join", "rebalance_timeout",
        "timer classic_sync", "rebalance_timeout"
    );

    /** The word for a timer, by its key in GroupMetadataManager and GroupCoordinatorShard. */
    static String nameOfTimer(String key) {
        return "timer " + switch (key.split("-")[0]) {
            case "expire" -> "cleanupGroupMetadata";
            case "session", "heartbeat" -> "session_timeout";
            case "rebalance" -> "rebalance_timeout";
            case "join" -> "classic_join";
            case "sync" -> "classic_sync";
            default -> key.split("-")[0];
        };
    }

    /** Why `record`, one of those that a call wrote together, is a tombstone; null if it is not one. */
    String why(String call, CoordinatorRecord record, List<CoordinatorRecord> together) {
        if (record.value() != null) {
            return null;
        }
        if (OF_CALL.containsKey(call)) {
            return OF_CALL.get(call);
        }
        short type = Records.type(record);
        if (call.endsWith("cleanupGroupMetadata")) {
            return OFFSETS.contains(type) ? "expired" : "group_expired";
        }
        if (type == REGULAR_EXPRESSION && !endsAKind(together)) {
            return "regex_unused";
        }
        if (type == TOPICS && !endsAKind(together)) {
            return "record_unused";
        }
        if (OF_LEAVING.containsKey(call)) {
            return endsAKind(together) ? "conversion" : OF_LEAVING.get(call);
        }
        if (call.startsWith("join")) {
            return !endsAKind(together) ? "member_replaced" : takesMembersOver(together) ? "conversion" : "replaced_empty_group";
        }
        throw new IllegalStateException("No cause is known about a tombstone of type " + type + " by " + call);
    }

    private static boolean endsAKind(List<CoordinatorRecord> records) {
        return records.stream().anyMatch(record -> record.value() == null && GROUPS.contains(Records.type(record)));
    }

    /**
     * Whether members moved to the new kind, apart from the one that joins: they leave the old group, or are in the new
     * one.
     */
    private static boolean takesMembersOver(List<CoordinatorRecord> records) {
        boolean leaves = records.stream()
            .anyMatch(record -> record.value() == null && Records.type(record) == CONSUMER_MEMBER);
        return leaves || records.stream()
            .filter(record -> record.value() != null && Records.type(record) == CONSUMER_MEMBER)
            .map(Records::key).distinct().count() > 1;
    }
}
