package judge;

import java.util.Optional;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;

/** What builders and requests have since 4.1. */
final class Calls {
    private Calls() {}

    static GroupCoordinatorShard.Builder withoutAuthorizer(GroupCoordinatorShard.Builder builder) {
        builder.withAuthorizerPlugin(Optional.empty());
        return builder;
    }

    static void setTopicId(OffsetCommitRequestTopic topic, Uuid id) {
        topic.setTopicId(id);
    }
}
