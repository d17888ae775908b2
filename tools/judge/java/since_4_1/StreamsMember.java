package judge;

import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.KeyValue;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Subtopology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TaskIds;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TopicInfo;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;

/** A member by StreamsGroupHeartbeat (KIP-1071). All members of a group bring one topology. */
final class StreamsMember extends Member {
    private static final int LEAVES = -1;
    private static final int LEAVES_FOR_A_WHILE = -2;

    private final StreamsGroupHeartbeatRequestData.Topology topology;
    private int epoch;
    private List<TaskIds> active = List.of();
    private List<TaskIds> standby = List.of();
    private List<TaskIds> warmup = List.of();
    private boolean hasNewTasks;

    StreamsMember(World world, String group, String instanceId) {
        super(world, group, instanceId);
        memberId = chance.uuid().toString();
        topology = world.newKinds.topologies.computeIfAbsent(group, name -> topology(world, name));
    }

    private static StreamsGroupHeartbeatRequestData.Topology topology(World world, String group) {
        Chance chance = world.chance;
        String repartition = group + "-KSTREAM-repartition";
        List<Subtopology> subtopologies = new ArrayList<>();
        boolean isStateful = world.features.hasAnyOf(Feature.STANDBY_TASKS, Feature.WARM_UP_TASKS);
        boolean repartitions = chance.is(50) && World.isTopicName(repartition);
        subtopologies.add(new Subtopology().setSubtopologyId("0")
            .setSourceTopics(world.someTopicNames())
            .setStateChangelogTopics(changelogs(chance, group, 0, isStateful))
            .setRepartitionSinkTopics(repartitions ? List.of(repartition) : List.of()));
        if (repartitions) {
            subtopologies.add(new Subtopology().setSubtopologyId("1")
                .setRepartitionSourceTopics(List.of(new TopicInfo().setName(repartition).setPartitions(chance.of(0, 2))))
                .setStateChangelogTopics(changelogs(chance, group, 1, isStateful)));
        }
        return new StreamsGroupHeartbeatRequestData.Topology().setEpoch(0).setSubtopologies(subtopologies);
    }

    private static List<TopicInfo> changelogs(Chance chance, String group, int number, boolean isStateful) {
        String name = group + "-store" + number + "-changelog";
        if (chance.is(isStateful ? 0 : 50) || !World.isTopicName(name)) {
            return List.of();
        }
        var configs = chance.is(50)
            ? List.of(new KeyValue().setKey("cleanup.policy").setValue("compact")) : List.<KeyValue>of();
        return List.of(new TopicInfo().setName(name).setReplicationFactor((short) 1).setTopicConfigs(configs));
    }

    @Override
    void heartbeat() {
        boolean isFull = epoch == 0;
        StreamsGroupHeartbeatRequestData request = request(epoch);
        if (isFull) {
            request.setTopology(topology).setRebalanceTimeoutMs(chance.of(5_000, 45_000, 300_000))
                .setRackId(chance.is(20) ? "rack-0" : null).setProcessId("process-" + chance.between(0, 3))
                .setClientTags(chance.is(40) ? List.of(new KeyValue().setKey("zone").setValue("z1")) : List.of())
                .setActiveTasks(List.of()).setStandbyTasks(List.of()).setWarmupTasks(List.of());
            if (chance.is(50)) {
                int host = chance.between(0, 9);
                request.setUserEndpoint(
                    new StreamsGroupHeartbeatRequestData.Endpoint().setHost("app-" + host + ".local").setPort(8040 + host)
                );
            }
        } else if (hasNewTasks && chance.is(75)) {
            request.setActiveTasks(active).setStandbyTasks(standby).setWarmupTasks(warmup);
            hasNewTasks = false;
        }
        var result = world.groups.call(
            isFull ? "join streams" : "heartbeat streams",
            shard -> shard.streamsGroupHeartbeat(as(ApiKeys.STREAMS_GROUP_HEARTBEAT), request)
        );
        if (result == null) {
            isGone = isFull;
            epoch = 0;
            return;
        }
        epoch = result.data().memberEpoch();
        if (chance.is(8)) {
            Release.describeTopology(world, group, topology.epoch());
        }
        if (result.data().activeTasks() != null) {
            active = owned(result.data().activeTasks());
            standby = owned(result.data().standbyTasks());
            warmup = owned(result.data().warmupTasks());
            hasNewTasks = true;
        }
        if (chance.is(60)) {
            result.creatableTopics().values().forEach(
                topic -> world.createTopic(topic.name(), Math.max(1, topic.numPartitions()))
            );
        }
    }

    private static List<TaskIds> owned(List<StreamsGroupHeartbeatResponseData.TaskIds> tasks) {
        return tasks.stream()
            .map(each -> new TaskIds().setSubtopologyId(each.subtopologyId()).setPartitions(each.partitions()))
            .toList();
    }

    private StreamsGroupHeartbeatRequestData request(int withEpoch) {
        return new StreamsGroupHeartbeatRequestData()
            .setGroupId(group).setMemberId(memberId).setInstanceId(instanceId).setMemberEpoch(withEpoch);
    }

    @Override
    void commit() {
        if (epoch > 0) {
            List<String> topics = topology.subtopologies().get(0).sourceTopics();
            world.commits.commit(as(ApiKeys.OFFSET_COMMIT), group, memberId, instanceId, epoch, topics);
        } else {
            heartbeat();
        }
    }

    @Override
    void leave() {
        if (epoch > 0) {
            boolean comesBack = instanceId != null && chance.is(60);
            var request = request(comesBack ? LEAVES_FOR_A_WHILE : LEAVES);
            world.groups.call("leave", shard -> shard.streamsGroupHeartbeat(as(ApiKeys.STREAMS_GROUP_HEARTBEAT), request));
        }
        isGone = true;
    }

    @Override
    void resubscribe() {
        if (chance.is(30)) {
            world.newKinds.topologies.put(group, topology(world, group).setEpoch(topology.epoch() + 1));
        }
        heartbeat();
    }
}
