package judge;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;

/** The immutable topics of a cluster at a moment. `version` rises with each change. */
record Topics(Map<String, Topic> byName, long version) {
    static final Topics NONE = new Topics(Map.of(), 0);

    /** A topic; its partitions have no racks. */
    record Topic(String name, Uuid id, int partitionCount) {}

    /** The topics that are new, changed, and deleted. */
    record Changes(Set<Uuid> created, Set<Uuid> changed, Set<Uuid> deleted) {}

    Collection<Topic> all() {
        return byName.values();
    }

    Set<String> names() {
        return byName.keySet();
    }

    Set<Uuid> ids() {
        return all().stream().map(Topic::id).collect(Collectors.toSet());
    }

    /** Null if there is none. */
    Topic named(String name) {
        return byName.get(name);
    }

    /** Null if there is none. */
    Topic withId(Uuid id) {
        return all().stream().filter(topic -> topic.id().equals(id)).findFirst().orElse(null);
    }

    /** These topics with one more, or with one replaced by another of the same name. */
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

    /** The changes since `before`. */
    Changes since(Topics before) {
        Set<Uuid> created = ids();
        created.removeAll(before.ids());
        Set<Uuid> deleted = before.ids();
        deleted.removeAll(ids());
        Set<Uuid> changed = all().stream()
            .filter(topic -> !topic.equals(before.named(topic.name())))
            .map(Topic::id)
            .collect(Collectors.toSet());
        return new Changes(created, changed, deleted);
    }
}
