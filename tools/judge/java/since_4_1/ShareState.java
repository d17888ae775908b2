package judge;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData.StateBatch;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.PartitionIdData;
import org.apache.kafka.server.share.persister.PartitionStateData;
import org.apache.kafka.server.share.persister.TopicData;

/** What the share partition leaders and the group coordinator ask of the share coordinator. */
final class ShareState {
    /** A share partition, as long as this world has not deleted its state. */
    private record Place(String group, Uuid topic, int partition) {}

    /** What its leader knows: its epoch, and where records begin that are not acknowledged. */
    private static final class Leader {
        private int epoch;
        private int stateEpoch;
        private long start;
    }

    private static final byte RELEASED = 0;
    private static final byte ACCEPTED = 2;
    private static final byte REJECTED = 4;

    private final World world;
    private final Chance chance;
    private final Map<Place, Leader> leaders = new HashMap<>();

    ShareState(World world) {
        this.world = world;
        this.chance = world.chance;
    }

    /** Initializes the state of partitions and tells the group coordinator of it; either may fail to happen. */
    void initialize(InitializeShareGroupStateParameters parameters) {
        String group = parameters.groupTopicPartitionData().groupId();
        Map<Uuid, Set<Integer>> initialized = new HashMap<>();
        for (TopicData<PartitionStateData> topic : parameters.groupTopicPartitionData().topicsData()) {
            for (PartitionStateData partition : topic.partitions()) {
                if (chance.is(95) && initialize(group, topic.topicId(), partition)) {
                    initialized.computeIfAbsent(topic.topicId(), id -> new HashSet<>()).add(partition.partition());
                }
            }
        }
        if (initialized.isEmpty() || chance.is(5)) {
            return;
        }
        if (chance.is(4)) {
            world.groups.call(
                "uninitializeShareGroupState", shard -> shard.uninitializeShareGroupState(group, initialized)
            );
        } else {
            world.groups.call("initializeShareGroupState", shard -> shard.initializeShareGroupState(group, initialized));
        }
    }

    private boolean initialize(String group, Uuid topic, PartitionStateData state) {
        var request = new InitializeShareGroupStateRequestData().setGroupId(group).setTopics(List.of(
            new InitializeShareGroupStateRequestData.InitializeStateData().setTopicId(topic).setPartitions(List.of(
                new InitializeShareGroupStateRequestData.PartitionData().setPartition(state.partition())
                    .setStateEpoch(chance.is(97) ? state.stateEpoch() : state.stateEpoch() - 1).setStartOffset(state.startOffset())))));
        var response = world.share.call("initialize", shard -> shard.initializeState(request));
        boolean isDone = response != null && response.results().get(0).partitions().get(0).errorCode() == 0;
        if (isDone) {
            Leader leader = leaders.computeIfAbsent(new Place(group, topic, state.partition()), place -> new Leader());
            leader.stateEpoch = state.stateEpoch();
        }
        return isDone;
    }

    /** Lets the leader of one partition of a group read or write its state. */
    void write(String group) {
        Place place = chance.oneOf(leaders.keySet().stream().filter(each -> each.group().equals(group)).sorted(
            Comparator.comparing(Place::toString)).toList());
        if (place == null) {
            return;
        }
        Leader leader = leaders.get(place);
        if (leader.epoch == 0 && chance.is(60) || chance.is(10)) {
            leader.epoch += chance.between(0, 2);
            read(place, leader);
        }
        for (int times = chance.between(1, 4); times > 0; times--) {
            write(place, leader);
        }
    }

    private void read(Place place, Leader leader) {
        var request = new ReadShareGroupStateRequestData().setGroupId(place.group()).setTopics(List.of(
            new ReadShareGroupStateRequestData.ReadStateData().setTopicId(place.topic()).setPartitions(List.of(
                new ReadShareGroupStateRequestData.PartitionData().setPartition(place.partition())
                    .setLeaderEpoch(chance.is(90) ? leader.epoch : chance.of(-1, leader.epoch - 1))))));
        world.share.call("readState", shard -> shard.readStateAndMaybeUpdateLeaderEpoch(request));
    }

    private void write(Place place, Leader leader) {
        if (chance.is(40)) {
            leader.start += chance.between(0, 20);
        }
        var partition = new WriteShareGroupStateRequestData.PartitionData().setPartition(place.partition())
            .setLeaderEpoch(chance.is(90) ? leader.epoch : chance.of(-1, -1, leader.epoch - 1, leader.epoch + 1))
            .setStateEpoch(chance.is(97) ? leader.stateEpoch : leader.stateEpoch + chance.of(-1, 1))
            .setStartOffset(chance.is(75) ? leader.start : -1)
            .setStateBatches(batches(leader.start));
        Delivered.set(partition, chance.is(85) ? chance.between(0, 40) : -1);
        var request = new WriteShareGroupStateRequestData().setGroupId(place.group()).setTopics(List.of(
            new WriteShareGroupStateRequestData.WriteStateData().setTopicId(place.topic())
                .setPartitions(List.of(partition))));
        world.share.call("writeState", shard -> shard.writeState(request));
    }

    private List<StateBatch> batches(long start) {
        List<StateBatch> batches = new ArrayList<>();
        long next = start;
        boolean areOfEveryType = world.features.has(Feature.ACKNOWLEDGEMENTS);
        for (int count = chance.between(0, 4); count > 0; count--) {
            long first = next + (areOfEveryType && chance.is(30) ? chance.between(1, 5) : 0);
            next = first + chance.between(1, 10);
            batches.add(new StateBatch().setFirstOffset(first).setLastOffset(next - 1)
                .setDeliveryState(areOfEveryType ? chance.of(RELEASED, ACCEPTED, ACCEPTED, REJECTED) : ACCEPTED)
                .setDeliveryCount((short) chance.between(1, 5)));
        }
        return batches;
    }

    /** Deletes the state of partitions, one call each. */
    void delete(DeleteShareGroupStateParameters parameters) {
        String group = parameters.groupTopicPartitionData().groupId();
        for (TopicData<PartitionIdData> topic : parameters.groupTopicPartitionData().topicsData()) {
            for (PartitionIdData partition : topic.partitions()) {
                var request = new DeleteShareGroupStateRequestData().setGroupId(group).setTopics(List.of(
                    new DeleteShareGroupStateRequestData.DeleteStateData().setTopicId(topic.topicId()).setPartitions(
                        List.of(new DeleteShareGroupStateRequestData.PartitionData().setPartition(partition.partition())))));
                world.share.call("deleteState", shard -> shard.deleteState(request));
                leaders.remove(new Place(group, topic.topicId(), partition.partition()));
            }
        }
    }

    void topicsDeleted(Set<Uuid> ids) {
        world.share.call("topic_deleted", shard -> shard.maybeCleanupShareState(ids));
        leaders.keySet().removeIf(place -> ids.contains(place.topic()));
    }

    void snapshotColdPartitions() {
        world.share.call("snapshotColdPartitions", shard -> shard.snapshotColdPartitions());
    }
}
