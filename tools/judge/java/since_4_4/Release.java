package judge;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.utils.internals.AppInfoParser;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.streams.StreamsGroupDescribeResult;

/** What Kafka's classes called otherwise before 4.4, as they have it since then. */
final class Release {
    static final String NAME = AppInfoParser.getVersion();
    static final LogContext LOGS = new LogContext();
    static final boolean HAS_STATIC_STREAMS = true;

    private Release() {}

    static CoordinatorResult<Boolean, CoordinatorRecord> join(
        GroupCoordinatorShard shard,
        Client client,
        JoinGroupRequestData request,
        CompletableFuture<JoinGroupResponseData> answer
    ) {
        // No topology was described here, so none has to be cleaned up.
        return shard.classicGroupJoin(client, request, answer, true);
    }

    static List<StreamsGroupDescribeResponseData.DescribedGroup> described(StreamsGroupDescribeResult result) {
        return result.describedGroups();
    }

    /** A member pushes the description of its topology to the broker, which stores it somewhere or fails to (KIP-1331). */
    static void describeTopology(World world, String group, int epoch) {
        boolean isStored = world.chance.is(75);
        world.groups.call(
            "describeTopology",
            shard -> isStored
                ? shard.setStoredDescriptionTopologyEpoch(group, epoch)
                : shard.setFailedDescriptionTopologyEpoch(group, epoch)
        );
    }

    /** What a broker does that has stored descriptions, before groups are deleted or while one is empty. */
    static void forgetTopologies(World world, List<String> groups) {
        Set<String> stored = world.groups.shard.streamsGroupsWithStoredTopologyDescription(groups, Long.MAX_VALUE);
        Set<String> empty = world.groups.shard.listStreamsGroupsNeedingTopologyCleanup(Long.MAX_VALUE);
        if (!stored.isEmpty()) {
            world.groups.call("describeTopology", shard -> shard.markStoredDescriptionTopologyEpochUncertainBatch(stored));
        }
        for (String group : new TreeSet<>(empty)) {
            world.groups.call(
                "describeTopology", shard -> shard.markStoredDescriptionTopologyEpochUncertain(group, false)
            );
        }
        empty.addAll(stored);
        if (!empty.isEmpty() && world.chance.is(70)) {
            world.groups.call(
                "describeTopology", shard -> shard.finalizeStoredDescriptionTopologyEpochAfterDeleteBatch(empty)
            );
        }
    }

    static void setGeneration(TxnOffsetCommitRequestData request, int generation) {
        request.setGenerationIdOrMemberEpoch(generation);
    }
}
