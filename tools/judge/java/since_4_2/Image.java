package judge;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;

/** Topics as coordinators see them since 4.2. */
record Image(Topics topics) implements CoordinatorMetadataImage {
    private record Found(String name, Uuid id, int partitionCount) implements TopicMetadata {
        @Override
        public List<String> partitionRacks(int partition) {
            // Kafka sorts it in place.
            return new ArrayList<>();
        }
    }

    /** A topic that was created again under its name is deleted and created. */
    record Delta(Set<Uuid> createdTopicIds, Set<Uuid> changedTopicIds, Set<Uuid> deletedTopicIds, Image image)
        implements CoordinatorMetadataDelta {}

    Delta since(Topics before) {
        Topics.Changes changes = topics.since(before);
        return new Delta(changes.created(), changes.changed(), changes.deleted(), this);
    }

    private static TopicMetadata found(Topics.Topic topic) {
        return new Found(topic.name(), topic.id(), topic.partitionCount());
    }

    @Override
    public Set<Uuid> topicIds() {
        return topics.ids();
    }

    @Override
    public Set<String> topicNames() {
        return topics.names();
    }

    @Override
    public Optional<TopicMetadata> topicMetadata(String name) {
        return Optional.ofNullable(topics.named(name)).map(Image::found);
    }

    @Override
    public Optional<TopicMetadata> topicMetadata(Uuid id) {
        return Optional.ofNullable(topics.withId(id)).map(Image::found);
    }

    @Override
    public CoordinatorMetadataDelta emptyDelta() {
        return since(topics);
    }

    @Override
    public long version() {
        return topics.version();
    }

    @Override
    public boolean isEmpty() {
        return topics.all().isEmpty();
    }
}
