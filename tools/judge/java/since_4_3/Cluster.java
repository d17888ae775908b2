package judge;

import java.util.List;

import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorShard;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;

/** How coordinators learn of topics since 4.3, and the calls that have another form before. */
final class Cluster {
    private Cluster() {}

    static void load(CoordinatorShard<CoordinatorRecord> shard, Topics topics) {
        shard.onLoaded(new Image(topics));
    }

    static void change(CoordinatorShard<CoordinatorRecord> shard, Topics before, Topics after) {
        Image image = new Image(after);
        shard.onMetadataUpdate(image.since(before), image);
    }

    static CoordinatorResult<Void, CoordinatorRecord> delete(GroupCoordinatorShard shard, Topics.Topic topic) {
        return shard.onTopicsDeleted(List.of(new GroupCoordinatorShard.DeletedTopic(topic.id(), topic.name())));
    }

    static OffsetFetchResponseGroup fetchAll(GroupCoordinatorShard shard, OffsetFetchRequestGroup request, long cut) {
        return shard.fetchOffsets(request, cut);
    }
}
