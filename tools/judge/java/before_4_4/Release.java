package judge;

import java.util.List;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;

/** What Kafka's classes call otherwise from 4.4 on, as they have it until then. */
final class Release {
    static final String NAME = AppInfoParser.getVersion();
    static final LogContext LOGS = new LogContext();
    static final boolean HAS_STATIC_STREAMS = false;

    private Release() {}

    static CoordinatorResult<Void, CoordinatorRecord> join(
        GroupCoordinatorShard shard,
        Client client,
        JoinGroupRequestData request,
        CompletableFuture<JoinGroupResponseData> answer
    ) {
        return shard.classicGroupJoin(client, request, answer);
    }

    /** The groups of an answer, which is a list of them. */
    static <T> List<T> described(List<T> groups) {
        return groups;
    }

    static void describeTopology(World world, String group, int epoch) {}

    static void forgetTopologies(World world, List<String> groups) {}

    static void setGeneration(TxnOffsetCommitRequestData request, int generation) {
        request.setGenerationId(generation);
    }
}
