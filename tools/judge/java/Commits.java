package judge;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic;
import org.apache.kafka.common.protocol.ApiKeys;

/** Commits of offsets, also within transactions of a few producers. */
final class Commits {
    private static final short VERSION_WITH_RETENTION = 4;
    private static final int PRODUCERS = 3;

    private final World world;
    private final Chance chance;
    private final List<Log.Producer> producers = new ArrayList<>();
    private final Map<Long, Log.Producer> open = new LinkedHashMap<>();
    /** The producers whose transactions are of version 2. */
    private final Set<Long> ofVersion2 = new HashSet<>();

    Commits(World world) {
        this.world = world;
        this.chance = world.chance;
        if (!world.features.hasAnyOf(Feature.TRANSACTIONS_V1, Feature.TRANSACTIONS_V2)) {
            return;
        }
        for (int number = 0; number < PRODUCERS; number++) {
            Log.Producer producer = new Log.Producer(chance.between(0, 9999) * 10L + number, (short) chance.between(0, 5));
            producers.add(producer);
            boolean isVersion2 = !world.features.has(Feature.TRANSACTIONS_V1) || chance.is(50);
            if (isVersion2 && world.features.has(Feature.TRANSACTIONS_V2)) {
                ofVersion2.add(producer.id());
            }
        }
    }

    /** Commits as a member of a group, in the given generation or member epoch. */
    void commit(Client client, String group, String memberId, String instanceId, int generation, List<String> topics) {
        if (!producers.isEmpty() && chance.is(25)) {
            commitInTransaction(group, memberId, instanceId, generation, topics);
            return;
        }
        OffsetCommitRequestData request = new OffsetCommitRequestData()
            .setGroupId(group).setMemberId(memberId).setGroupInstanceId(instanceId)
            .setGenerationIdOrMemberEpoch(generation).setTopics(committed(topics));
        world.groups.call("commitOffset", shard -> shard.commitOffset(client, request));
    }

    /** Commits without being a member, as an administrator does, or a consumer that assigns itself partitions. */
    void commitAlone() {
        String group = world.anyGroup();
        List<String> topics = world.someTopicNames();
        if (!producers.isEmpty() && chance.is(40)) {
            commitInTransaction(group, "", null, chance.is(5) ? 1 : -1, topics);
            return;
        }
        byte[] address = {127, 0, 0, 1};
        // As a former member of the group may do.
        int generation = chance.is(5) ? chance.between(0, 3) : -1;
        OffsetCommitRequestData request = new OffsetCommitRequestData()
            .setGroupId(group).setGenerationIdOrMemberEpoch(generation).setTopics(committed(topics));
        Client client = Client.of("admin", address, ApiKeys.OFFSET_COMMIT);
        if (world.features.has(Feature.OLD_VERSIONS) && chance.is(30)) {
            client = Client.of("old", address, ApiKeys.OFFSET_COMMIT, VERSION_WITH_RETENTION);
            request.setRetentionTimeMs(chance.spread(0, 4 * world.settings.retentionMs()));
        }
        Client as = client;
        world.groups.call("commitOffset", shard -> shard.commitOffset(as, request));
    }

    private void commitInTransaction(
        String group, String memberId, String instanceId, int generation, List<String> topics
    ) {
        List<OffsetCommitRequestTopic> committed = committed(topics);
        // Sometimes there are two producers, with transactions open at the same time.
        for (Log.Producer producer : chance.some(producers, 1, chance.is(20) ? 2 : 1)) {
            commitInTransaction(open.getOrDefault(producer.id(), producer), group, memberId, instanceId, generation, committed);
        }
    }

    private void commitInTransaction(
        Log.Producer producer,
        String group,
        String memberId,
        String instanceId,
        int generation,
        List<OffsetCommitRequestTopic> committed
    ) {
        Client client = Client.of("producer", new byte[] {127, 0, 0, 1}, ApiKeys.TXN_OFFSET_COMMIT);
        TxnOffsetCommitRequestData request = new TxnOffsetCommitRequestData()
            .setTransactionalId("tx-" + producer.id()).setProducerId(producer.id()).setProducerEpoch(producer.epoch())
            .setGroupId(group).setMemberId(memberId).setGroupInstanceId(instanceId)
            .setTopics(committed.stream().map(Commits::inTransaction).toList());
        Release.setGeneration(request, generation);
        long end = world.groups.log.end();
        world.groups.call(
            "commitTransactionalOffset", producer, shard -> shard.commitTransactionalOffset(client, request)
        );
        if (world.groups.log.end() > end) {
            open.put(producer.id(), producer);
        }
    }

    /** Ends an open transaction; possibly one that was announced for the group and committed nothing. */
    void endTransaction() {
        boolean areLate = world.features.has(Feature.LATE_MARKERS);
        Log.Producer producer = chance.oneOf(new ArrayList<>(open.values()));
        if (producer == null && chance.is(areLate ? 40 : 10)) {
            producer = chance.oneOf(producers);
        }
        if (producer == null) {
            return;
        }
        if (areLate && !ofVersion2.contains(producer.id()) && chance.is(40)) {
            // The marker of an earlier transaction. Before KIP-890, it also ends what the producer writes now, without
            // its knowledge.
            world.groups.endTransaction(producer, chance.is(65));
            return;
        }
        open.remove(producer.id());
        // With version 2 the epoch rises at each end, and the marker has the new one.
        short epoch = (short) (producer.epoch() + (ofVersion2.contains(producer.id()) ? 1 : 0));
        Log.Producer ending = new Log.Producer(producer.id(), epoch);
        producers.removeIf(each -> each.id() == ending.id());
        producers.add(ending);
        boolean isCommit = chance.is(65);
        world.groups.endTransaction(ending, isCommit);
        if (areLate && !ofVersion2.contains(ending.id()) && chance.is(25)) {
            // The coordinator did not get the answer, and writes the marker again.
            world.groups.endTransaction(ending, isCommit);
        }
    }

    private List<OffsetCommitRequestTopic> committed(List<String> among) {
        List<String> names = chance.some(among, 1, 3);
        if (names.isEmpty() || chance.is(8)) {
            names.add(chance.of("never-existed", "a", "long-gone"));
        }
        List<OffsetCommitRequestTopic> topics = new ArrayList<>();
        for (String name : names.stream().distinct().toList()) {
            Topics.Topic topic = world.topics().named(name);
            int count = topic == null ? 2 : topic.partitionCount();
            List<OffsetCommitRequestPartition> partitions = new ArrayList<>();
            for (int first = chance.between(0, count - 1), n = first; n < Math.min(count, first + 3); n++) {
                partitions.add(partition(n));
            }
            OffsetCommitRequestTopic committed = new OffsetCommitRequestTopic().setName(name).setPartitions(partitions);
            Calls.setTopicId(committed, topic != null && chance.is(60) ? topic.id() : Uuid.ZERO_UUID);
            topics.add(committed);
        }
        return topics;
    }

    private OffsetCommitRequestPartition partition(int index) {
        return new OffsetCommitRequestPartition()
            .setPartitionIndex(index)
            .setCommittedOffset(chance.is(97) ? chance.between(0, 100) : chance.of(0L, 1L << 40, Long.MAX_VALUE))
            .setCommittedLeaderEpoch(chance.is(60) ? -1 : chance.between(0, 20))
            .setCommittedMetadata(
                chance.is(80) ? "" : chance.of(null, "x", "host:1", "数据", "{\"a\": \"b\\n\"}", "m".repeat(chance.between(1, 400)))
            );
    }

    private static TxnOffsetCommitRequestTopic inTransaction(OffsetCommitRequestTopic topic) {
        return new TxnOffsetCommitRequestTopic().setName(topic.name()).setPartitions(
            topic.partitions().stream().map(partition -> new TxnOffsetCommitRequestPartition()
                .setPartitionIndex(partition.partitionIndex())
                .setCommittedOffset(partition.committedOffset())
                .setCommittedLeaderEpoch(partition.committedLeaderEpoch())
                .setCommittedMetadata(partition.committedMetadata())).toList());
    }
}
