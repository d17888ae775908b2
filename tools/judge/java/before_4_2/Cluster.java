package judge;

import java.util.List;
import java.util.stream.IntStream;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorShard;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/** How coordinators learn of topics before 4.2: from the image of the metadata log. */
final class Cluster {
    private static final int BROKER = 1;

    private Cluster() {}

    static void load(CoordinatorShard<CoordinatorRecord> shard, Topics topics) {
        shard.onLoaded(image(topics));
    }

    static void change(CoordinatorShard<CoordinatorRecord> shard, Topics before, Topics after) {
        MetadataDelta delta = new MetadataDelta(image(before));
        Topics.Changes changes = after.since(before);
        changes.deleted().forEach(id -> delta.replay(new RemoveTopicRecord().setTopicId(id)));
        for (Topics.Topic topic : after.all()) {
            Topics.Topic was = before.withId(topic.id());
            if (was == null) {
                delta.replay(new TopicRecord().setName(topic.name()).setTopicId(topic.id()));
            }
            add(delta, topic.id(), was == null ? 0 : was.partitionCount(), topic.partitionCount());
        }
        shard.onNewMetadataImage(delta.apply(provenance(after)), delta);
    }

    private static MetadataImage image(Topics topics) {
        MetadataDelta delta = new MetadataDelta(MetadataImage.EMPTY);
        for (Topics.Topic topic : topics.all()) {
            delta.replay(new TopicRecord().setName(topic.name()).setTopicId(topic.id()));
            add(delta, topic.id(), 0, topic.partitionCount());
        }
        return delta.apply(provenance(topics));
    }

    private static void add(MetadataDelta delta, Uuid topic, int from, int to) {
        for (int number = from; number < to; number++) {
            delta.replay(new PartitionRecord().setTopicId(topic).setPartitionId(number).setLeader(BROKER)
                .setReplicas(List.of(BROKER)).setIsr(List.of(BROKER)));
        }
    }

    private static MetadataProvenance provenance(Topics topics) {
        return new MetadataProvenance(topics.version(), 0, 0, true);
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
