package judge;

import java.util.Optional;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;

/** What builders and requests have before 4.1. */
final class Calls {
    private Calls() {}

    static GroupCoordinatorShard.Builder withoutAuthorizer(GroupCoordinatorShard.Builder builder) {
        builder.withAuthorizer(Optional.empty());
        return builder;
    }

    /** A commit names its topics by their names alone. */
    static void setTopicId(OffsetCommitRequestTopic topic, Uuid id) {}
}
