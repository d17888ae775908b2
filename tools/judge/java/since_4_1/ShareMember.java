package judge;

import java.util.List;

import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.protocol.ApiKeys;

/** A member by ShareGroupHeartbeat (KIP-932). */
final class ShareMember extends Member {
    private static final int LEAVES = -1;

    private List<String> topics;
    private int epoch;
    private boolean isNewlySubscribed;

    ShareMember(World world, String group) {
        super(world, group, null);
        memberId = chance.uuid().toString();
        topics = world.someTopicNames();
    }

    @Override
    void heartbeat() {
        boolean isFull = epoch == 0;
        ShareGroupHeartbeatRequestData request = request(epoch);
        if (isFull) {
            request.setRackId(chance.is(30) ? "rack-" + chance.between(0, 2) : null);
        }
        if (isFull || isNewlySubscribed) {
            request.setSubscribedTopicNames(topics);
            isNewlySubscribed = false;
        }
        var response = world.groups.call(
            isFull ? "join share" : "heartbeat share",
            shard -> shard.shareGroupHeartbeat(as(ApiKeys.SHARE_GROUP_HEARTBEAT), request)
        );
        if (response == null) {
            isGone = isFull;
            epoch = 0;
            return;
        }
        epoch = response.getKey().memberEpoch();
        response.getValue().ifPresent(world.newKinds.shareState::initialize);
    }

    private ShareGroupHeartbeatRequestData request(int withEpoch) {
        return new ShareGroupHeartbeatRequestData().setGroupId(group).setMemberId(memberId).setMemberEpoch(withEpoch);
    }

    @Override
    void commit() {
        world.newKinds.shareState.write(group);
    }

    @Override
    void leave() {
        if (epoch > 0) {
            var request = request(LEAVES);
            world.groups.call("leave", shard -> shard.shareGroupHeartbeat(as(ApiKeys.SHARE_GROUP_HEARTBEAT), request));
        }
        isGone = true;
    }

    @Override
    void resubscribe() {
        topics = world.someTopicNames();
        isNewlySubscribed = true;
        heartbeat();
    }
}
