package judge;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Utils;

/** A member that uses JoinGroup and SyncGroup: a consumer, or another client whose bytes Kafka does not read. */
final class ClassicMember extends Member {
    private static final short VERSION_WITHOUT_ID_FIRST = 3;

    private final String protocolType;
    private final List<String> protocols;
    private final short joinVersion;
    private final short subscriptionVersion;
    private final Worker worker;
    private final int sessionTimeout;
    private final int rebalanceTimeout;
    private List<String> topics;
    private CompletableFuture<JoinGroupResponseData> joining;
    private CompletableFuture<SyncGroupResponseData> syncing;
    private JoinGroupResponseData joined;
    private int generation = -1;
    /** The generation of the last assignment, which assignors remember. */
    private int assignedIn = -1;
    private List<TopicPartition> owned = List.of();

    ClassicMember(World world, String group, String instanceId, String protocolType) {
        super(world, group, instanceId);
        this.protocolType = protocolType;
        protocols = protocolType.equals("consumer")
            ? chance.some(List.of("range", "roundrobin", "sticky", "cooperative-sticky"), 1, 2)
            : chance.some(List.of(Worker.COMPATIBLE, Worker.SESSIONED), 1, 2);
        if (chance.is(80)) {
            protocols.add(protocolType.equals("consumer") ? "range" : Worker.EAGER);
        }
        worker = protocolType.equals("connect") ? new Worker(chance) : null;
        boolean waitsForId = instanceId != null || chance.is(80);
        joinVersion = waitsForId ? ApiKeys.JOIN_GROUP.latestVersion() : VERSION_WITHOUT_ID_FIRST;
        subscriptionVersion = (short) chance.between(0, 3);
        sessionTimeout = chance.between(6, world.settings.integer("group.max.session.timeout.ms") / 1000) * 1000;
        rebalanceTimeout = chance.of(10_000, 45_000, 60_000, 300_000);
        topics = world.someTopicNames();
    }

    @Override
    void heartbeat() {
        if (syncing != null && syncing.isDone()) {
            take(syncing.join());
        } else if (joining != null && joining.isDone()) {
            take(joining.join());
        } else if (joining == null && syncing == null) {
            if (generation < 0) {
                join();
            } else {
                beat();
            }
        }
    }

    private void join() {
        joining = new CompletableFuture<>();
        Client client = Client.of(clientId, address, ApiKeys.JOIN_GROUP, joinVersion);
        JoinGroupRequestData request = new JoinGroupRequestData()
            .setGroupId(group).setMemberId(memberId).setGroupInstanceId(instanceId)
            .setProtocolType(protocolType).setProtocols(offered())
            .setSessionTimeoutMs(sessionTimeout).setRebalanceTimeoutMs(rebalanceTimeout);
        world.groups.call("join", shard -> Release.join(shard, client, request, joining));
        if (world.groups.refused) {
            joining = null;
        } else if (joining.isDone() && chance.is(90)) {
            take(joining.join());
        }
    }

    private JoinGroupRequestData.JoinGroupRequestProtocolCollection offered() {
        var offered = new JoinGroupRequestData.JoinGroupRequestProtocolCollection();
        for (String protocol : protocols) {
            if (offered.find(protocol) == null) {
                offered.add(new JoinGroupRequestData.JoinGroupRequestProtocol().setName(protocol).setMetadata(metadata(protocol)));
            }
        }
        return offered;
    }

    private byte[] metadata(String protocol) {
        if (isUnknown() || chance.is(2)) {
            return chance.bytes(chance.between(0, 12));
        }
        if (worker != null) {
            return worker.metadata(protocol);
        }
        var self = UserData.in(group, assignedIn, memberId);
        ByteBuffer userData = chance.is(2)
            ? ByteBuffer.wrap(chance.bytes(chance.between(0, 20)))
            : UserData.of(chance, protocol, topics, owned, self);
        Optional<String> rack = chance.is(20) ? Optional.of("rack-" + chance.between(0, 2)) : Optional.empty();
        var subscription = new ConsumerPartitionAssignor.Subscription(topics, userData, owned, generation, rack);
        return Utils.toArray(ConsumerProtocol.serializeSubscription(subscription, subscriptionVersion));
    }

    private boolean isUnknown() {
        return worker == null && !protocolType.equals("consumer");
    }

    private void take(JoinGroupResponseData response) {
        joining = null;
        switch (Errors.forCode(response.errorCode())) {
            case NONE -> {
                memberId = response.memberId();
                generation = response.generationId();
                joined = response;
                if (chance.is(92)) {
                    sync();
                }
            }
            case MEMBER_ID_REQUIRED -> {
                memberId = response.memberId();
                if (chance.is(90)) {
                    join();
                }
            }
            default -> fail(Errors.forCode(response.errorCode()));
        }
    }

    private void sync() {
        syncing = new CompletableFuture<>();
        SyncGroupRequestData request = new SyncGroupRequestData()
            .setGroupId(group).setMemberId(memberId).setGroupInstanceId(instanceId).setGenerationId(generation)
            .setProtocolType(joined.protocolType()).setProtocolName(joined.protocolName());
        if (memberId.equals(joined.leader())) {
            request.setAssignments(assignments());
        }
        world.groups.call("sync", shard -> shard.classicGroupSync(as(ApiKeys.SYNC_GROUP), request, syncing));
        if (world.groups.refused) {
            syncing = null;
            generation = -1;
        } else if (syncing.isDone()) {
            take(syncing.join());
        }
    }

    private List<SyncGroupRequestData.SyncGroupRequestAssignment> assignments() {
        List<SyncGroupRequestData.SyncGroupRequestAssignment> assignments = new ArrayList<>();
        for (JoinGroupResponseData.JoinGroupResponseMember member : joined.members()) {
            assignments.add(new SyncGroupRequestData.SyncGroupRequestAssignment()
                .setMemberId(member.memberId()).setAssignment(assignment()));
        }
        return assignments;
    }

    private byte[] assignment() {
        if (isUnknown() || chance.is(2)) {
            return chance.bytes(chance.between(0, 12));
        }
        if (worker != null) {
            return worker.assignment(joined.protocolName(), memberId);
        }
        List<TopicPartition> partitions = chance.some(world.partitionsOf(topics), 0, 6);
        return Utils.toArray(ConsumerProtocol.serializeAssignment(new ConsumerPartitionAssignor.Assignment(partitions)));
    }

    private void take(SyncGroupResponseData response) {
        syncing = null;
        Errors error = Errors.forCode(response.errorCode());
        if (error != Errors.NONE) {
            fail(error);
        } else if (protocolType.equals("consumer")) {
            owned = world.partitionsOf(topics);
            assignedIn = generation;
        } else if (worker != null) {
            worker.run(response.assignment());
        }
    }

    private void beat() {
        HeartbeatRequestData request = new HeartbeatRequestData()
            .setGroupId(group).setMemberId(memberId).setGroupInstanceId(instanceId).setGenerationId(generation);
        var response = world.groups.call(
            "heartbeat", shard -> shard.classicGroupHeartbeat(as(ApiKeys.HEARTBEAT), request)
        );
        if (response == null || response.errorCode() != Errors.NONE.code()) {
            fail(response == null ? Errors.UNKNOWN_MEMBER_ID : Errors.forCode(response.errorCode()));
        }
    }

    private void fail(Errors error) {
        generation = -1;
        switch (error) {
            case UNKNOWN_MEMBER_ID -> memberId = "";
            case FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL -> isGone = true;
            default -> { }
        }
    }

    @Override
    void commit() {
        if (generation >= 0) {
            world.commits.commit(as(ApiKeys.OFFSET_COMMIT), group, memberId, instanceId, generation, topics);
        } else {
            heartbeat();
        }
    }

    @Override
    void leave() {
        var identity = new LeaveGroupRequestData.MemberIdentity().setMemberId(memberId).setGroupInstanceId(instanceId);
        if (instanceId != null && chance.is(50)) {
            // As an administrator does, who only knows the instance.
            identity.setMemberId("");
        }
        LeaveGroupRequestData request = new LeaveGroupRequestData().setGroupId(group).setMembers(List.of(identity));
        world.groups.call("leave", shard -> shard.classicGroupLeave(as(ApiKeys.LEAVE_GROUP), request));
        isGone = true;
    }

    @Override
    void resubscribe() {
        topics = world.someTopicNames();
        if (joining == null && syncing == null) {
            join();
        }
    }
}
