package judge;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;

/** Something that may happen in a history, and that a seed switches on or off. */
enum Feature {
    /** Consumers by JoinGroup. */
    CLASSIC_GROUPS,
    /** Connect workers, and a protocol that no class of Kafka reads. */
    CONNECT_GROUPS,
    CONSUMER_GROUPS,
    SHARE_GROUPS,
    STREAMS_GROUPS,
    /** Members with a group.instance.id, for every kind of group that supports them in the release. */
    STATIC_MEMBERS,
    REGULAR_EXPRESSIONS,
    /** Transactions whose markers have the epoch of their records. */
    TRANSACTIONS_V1,
    /** Transactions after KIP-890, which raise the epoch when they end. */
    TRANSACTIONS_V2,
    /** Markers that come twice, or end a later transaction of their producer, as before KIP-890. */
    LATE_MARKERS,
    /** Classic groups that become consumer groups, with members of both protocols. */
    CONVERSIONS,
    /** Consumer groups that become classic groups when their last member of the newer protocol leaves. */
    DOWNGRADES,
    TOPIC_DELETIONS,
    /** Share partitions whose records were released, accepted and rejected, with gaps; otherwise all are accepted. */
    ACKNOWLEDGEMENTS,
    STANDBY_TASKS,
    WARM_UP_TASKS,
    /** Assignments that wait for an interval and are computed by the executor. */
    BATCHED_ASSIGNMENTS,
    /** Several writes in one batch, as with group.coordinator.append.linger.ms. */
    SHARED_BATCHES,
    /** A clock that goes back, or far ahead. */
    CLOCK_JUMPS,
    /** Records as older brokers wrote them. */
    OLD_VERSIONS;

    static final Set<Feature> KINDS = Set.copyOf(EnumSet.range(CLASSIC_GROUPS, STREAMS_GROUPS));

    /** The kinds of groups that a feature requires. */
    static final Map<Feature, Set<Feature>> KINDS_NEEDED = Map.of(
        REGULAR_EXPRESSIONS, EnumSet.of(CONSUMER_GROUPS),
        CONVERSIONS, EnumSet.of(CLASSIC_GROUPS, CONSUMER_GROUPS),
        DOWNGRADES, EnumSet.of(CLASSIC_GROUPS, CONSUMER_GROUPS),
        ACKNOWLEDGEMENTS, EnumSet.of(SHARE_GROUPS),
        STANDBY_TASKS, EnumSet.of(STREAMS_GROUPS),
        WARM_UP_TASKS, EnumSet.of(STREAMS_GROUPS)
    );
}
