package judge;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;

/** The topics of a cluster at one moment, unchanging. */
final class Topics implements CoordinatorMetadataImage {
    static final Topics NONE = new Topics(Map.of(), 0);

    /** A topic; its partitions are in no rack. */
    record Topic(String name, Uuid id, int partitionCount) implements TopicMetadata {
        @Override
        public List<String> partitionRacks(int partition) {
            // Kafka sorts it in place.
            return new ArrayList<>();
        }
    }

    private final Map<String, Topic> byName;
    private final long version;

    private Topics(Map<String, Topic> byName, long version) {
        this.byName = byName;
        this.version = version;
    }

    Collection<Topic> all() {
        return byName.values();
    }

    Topic named(String name) {
        return byName.get(name);
    }

    /** These topics with one more, or another in the place of that with the same name. */
    Topics with(Topic topic) {
        Map<String, Topic> changed = new LinkedHashMap<>(byName);
        changed.put(topic.name(), topic);
        return new Topics(changed, version + 1);
    }

    Topics without(String name) {
        Map<String, Topic> changed = new LinkedHashMap<>(byName);
        changed.remove(name);
        return new Topics(changed, version + 1);
    }

    /** What has changed since `before`; a topic that was created again under its name is deleted and created. */
    Delta since(Topics before) {
        Set<Uuid> created = topicIds();
        created.removeAll(before.topicIds());
        Set<Uuid> deleted = before.topicIds();
        deleted.removeAll(topicIds());
        Set<Uuid> changed = all().stream()
            .filter(topic -> !topic.equals(before.named(topic.name())))
            .map(Topic::id)
            .collect(Collectors.toSet());
        return new Delta(created, changed, deleted, this);
    }

    record Delta(Set<Uuid> createdTopicIds, Set<Uuid> changedTopicIds, Set<Uuid> deletedTopicIds, Topics image)
        implements CoordinatorMetadataDelta {}

    @Override
    public Set<Uuid> topicIds() {
        return all().stream().map(Topic::id).collect(Collectors.toSet());
    }

    @Override
    public Set<String> topicNames() {
        return byName.keySet();
    }

    @Override
    public Optional<TopicMetadata> topicMetadata(String name) {
        return Optional.ofNullable(byName.get(name));
    }

    @Override
    public Optional<TopicMetadata> topicMetadata(Uuid id) {
        return all().stream().filter(topic -> topic.id().equals(id)).<TopicMetadata>map(topic -> topic).findFirst();
    }

    @Override
    public CoordinatorMetadataDelta emptyDelta() {
        return since(this);
    }

    @Override
    public long version() {
        return version;
    }

    @Override
    public boolean isEmpty() {
        return byName.isEmpty();
    }
}
