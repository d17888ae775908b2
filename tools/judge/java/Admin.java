package judge;

import java.util.List;

import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestPartition;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestTopic;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.protocol.ApiKeys;

/** The actions of administrators, in the steps that GroupCoordinatorService takes for them. */
final class Admin {
    private final World world;
    private final Chance chance;

    Admin(World world) {
        this.world = world;
        this.chance = world.chance;
    }

    void act() {
        int choice = chance.between(0, 99);
        if (world.features.has(Feature.TOPIC_DELETIONS) && chance.is(25)) {
            deleteTopic();
        } else if (choice < 25) {
            deleteGroups();
        } else if (choice < 52) {
            deleteOffsets();
        } else if (choice < 62) {
            world.newKinds.alterShareOffsets();
        } else if (choice < 70) {
            world.newKinds.deleteShareOffsets();
        } else if (choice < 90) {
            changeTopics();
        } else {
            world.groups.call("cleanupGroupMetadata", shard -> shard.cleanupGroupMetadata());
        }
    }

    private static Client as(ApiKeys api) {
        return Client.of("admin", new byte[] {127, 0, 0, 1}, api);
    }

    private void deleteGroups() {
        List<String> groups = chance.is(85) ? List.of(world.anyGroup()) : chance.some(world.groupNames, 1, 4);
        world.newKinds.prepareDeletion(groups);
        world.groups.call("deleteGroups", shard -> shard.deleteGroups(as(ApiKeys.DELETE_GROUPS), groups));
    }

    private void deleteOffsets() {
        var topics = new OffsetDeleteRequestData.OffsetDeleteRequestTopicCollection();
        for (String name : chance.some(world.allTopicNames(), 1, 3)) {
            List<OffsetDeleteRequestPartition> partitions = chance.some(List.of(0, 1, 2, 3), 1, 4).stream()
                .map(index -> new OffsetDeleteRequestPartition().setPartitionIndex(index)).toList();
            topics.add(new OffsetDeleteRequestTopic().setName(name).setPartitions(partitions));
        }
        OffsetDeleteRequestData request = new OffsetDeleteRequestData().setGroupId(world.anyGroup()).setTopics(topics);
        world.groups.call("deleteOffsets", shard -> shard.deleteOffsets(as(ApiKeys.OFFSET_DELETE), request));
    }

    private void deleteTopic() {
        Topics.Topic topic = chance.oneOf(List.copyOf(world.topics().all()));
        if (topic == null) {
            return;
        }
        world.change(world.topics().without(topic.name()));
        if (chance.is(15)) {
            // The coordinators were moving to another broker, so what they know about the topic stays.
            if (chance.is(60)) {
                world.createTopic(topic.name(), chance.between(1, 5));
            }
            return;
        }
        world.groups.call("onTopicsDeleted", shard -> Cluster.delete(shard, topic));
        world.newKinds.topicDeleted(topic.id());
    }

    private void changeTopics() {
        String name = chance.oneOf(world.allTopicNames());
        Topics.Topic topic = world.topics().named(name);
        if (topic == null) {
            world.createTopic(name, chance.between(1, 5));
        } else {
            int count = topic.partitionCount() + chance.between(1, 2);
            world.change(world.topics().with(new Topics.Topic(name, topic.id(), count)));
        }
    }
}
