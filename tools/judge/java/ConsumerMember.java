package judge;

import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;

/** A member that uses ConsumerGroupHeartbeat (KIP-848). */
final class ConsumerMember extends Member {
    private static final int LEAVES = -1;
    private static final int LEAVES_FOR_A_WHILE = -2;

    private final int rebalanceTimeout;
    private final String rack;
    private List<String> topics;
    private String regex;
    private int epoch;
    private boolean isNewlySubscribed;
    private List<ConsumerGroupHeartbeatRequestData.TopicPartitions> owned = List.of();
    private List<ConsumerGroupHeartbeatRequestData.TopicPartitions> assigned;

    ConsumerMember(World world, String group, String instanceId) {
        super(world, group, instanceId);
        memberId = chance.uuid().toString();
        rebalanceTimeout = chance.of(5_000, 45_000, 300_000);
        rack = chance.is(30) ? "rack-" + chance.between(0, 2) : null;
        subscribe();
    }

    private void subscribe() {
        boolean byRegex = world.features.has(Feature.REGULAR_EXPRESSIONS) && chance.is(50);
        topics = byRegex && chance.is(70) ? List.of() : world.someTopicNames();
        regex = byRegex ? chance.of(".*", "[a-d].*", "p.*", "nothing-.*", "orders|depots") : "";
        isNewlySubscribed = true;
    }

    @Override
    void heartbeat() {
        ConsumerGroupHeartbeatRequestData request = request(epoch);
        boolean isFull = epoch == 0;
        if (isFull) {
            owned = List.of();
            request.setRackId(rack).setRebalanceTimeoutMs(rebalanceTimeout)
                .setServerAssignor(chance.of(null, "uniform", "range")).setTopicPartitions(owned);
        } else if (assigned != null && chance.is(75)) {
            owned = assigned;
            assigned = null;
            request.setTopicPartitions(owned);
        }
        if (isFull || isNewlySubscribed) {
            request.setSubscribedTopicNames(topics).setSubscribedTopicRegex(regex);
            isNewlySubscribed = false;
        }
        ConsumerGroupHeartbeatResponseData response = send(isFull ? "join consumer" : "heartbeat consumer", request);
        if (response == null) {
            // Fenced or unknown: the member starts over, or another one with its instance id has taken its place.
            isGone = isFull;
            epoch = 0;
            return;
        }
        epoch = response.memberEpoch();
        if (response.assignment() != null) {
            assigned = new ArrayList<>();
            for (var each : response.assignment().topicPartitions()) {
                assigned.add(new ConsumerGroupHeartbeatRequestData.TopicPartitions()
                    .setTopicId(each.topicId()).setPartitions(each.partitions()));
            }
        }
    }

    private ConsumerGroupHeartbeatRequestData request(int withEpoch) {
        return new ConsumerGroupHeartbeatRequestData()
            .setGroupId(group).setMemberId(memberId).setInstanceId(instanceId).setMemberEpoch(withEpoch);
    }

    private ConsumerGroupHeartbeatResponseData send(String call, ConsumerGroupHeartbeatRequestData request) {
        return world.groups.call(
            call, shard -> shard.consumerGroupHeartbeat(as(ApiKeys.CONSUMER_GROUP_HEARTBEAT), request)
        );
    }

    @Override
    void commit() {
        if (epoch > 0) {
            world.commits.commit(as(ApiKeys.OFFSET_COMMIT), group, memberId, instanceId, epoch, topics);
        } else {
            heartbeat();
        }
    }

    @Override
    void leave() {
        if (epoch > 0) {
            boolean comesBack = instanceId != null && chance.is(60);
            send("leave", request(comesBack ? LEAVES_FOR_A_WHILE : LEAVES));
        }
        isGone = true;
    }

    @Override
    void resubscribe() {
        subscribe();
        heartbeat();
    }
}
