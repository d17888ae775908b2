package judge;

import org.apache.kafka.coordinator.group.GroupCoordinatorShard;

/** Warm-up tasks: since 4.4 an assignor cannot give them, and coordinators do not yet. */
final class Warmups {
    private Warmups() {}

    static void give(GroupCoordinatorShard shard, Chance chance) {}
}
