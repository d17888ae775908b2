package judge;

import java.util.List;
import java.util.stream.IntStream;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorShard;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;

/** How coordinators of 4.2 learn of topics, and the calls that have another form since then. */
final class Cluster {
    private Cluster() {}

    static void load(CoordinatorShard<CoordinatorRecord> shard, Topics topics) {
        shard.onLoaded(new Image(topics));
    }

    static void change(CoordinatorShard<CoordinatorRecord> shard, Topics before, Topics after) {
        Image image = new Image(after);
        shard.onNewMetadataImage(image, image.since(before));
    }

    static CoordinatorResult<Void, CoordinatorRecord> delete(GroupCoordinatorShard shard, Topics.Topic topic) {
        List<TopicPartition> partitions = IntStream.range(0, topic.partitionCount())
            .mapToObj(number -> new TopicPartition(topic.name(), number)).toList();
        return shard.onPartitionsDeleted(partitions);
    }

    static OffsetFetchResponseGroup fetchAll(GroupCoordinatorShard shard, OffsetFetchRequestGroup request, long cut) {
        return shard.fetchAllOffsets(request, cut);
    }
}
