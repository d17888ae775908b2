package judge;

import org.apache.kafka.common.protocol.ApiKeys;

/** A client in a group. What it does depends on what the coordinator answered before. */
abstract class Member {
    final World world;
    final Chance chance;
    final String group;
    final String instanceId;
    final String clientId;
    final byte[] address;
    String memberId = "";
    boolean isGone;

    Member(World world, String group, String instanceId) {
        this.world = world;
        this.chance = world.chance;
        this.group = group;
        this.instanceId = instanceId;
        this.clientId = chance.of("app", "", "sarama", "rdkafka", "клиент", "c-" + chance.between(0, 99));
        this.address = new byte[] {10, (byte) chance.between(0, 3), (byte) chance.between(0, 255), (byte) chance.between(1, 255)};
    }

    /** Continues: joins, or keeps its place. */
    abstract void heartbeat();

    /** Commits offsets as this member. */
    abstract void commit();

    /** Leaves; some clients come back later under the same instance id. */
    abstract void leave();

    /** Subscribes to something else. */
    abstract void resubscribe();

    Client as(ApiKeys api) {
        return Client.of(clientId, address, api);
    }

    /** Does one thing, mostly to keep its place. */
    void act() {
        int choice = chance.between(0, 99);
        if (choice < 60) {
            heartbeat();
        } else if (choice < 82) {
            commit();
        } else if (choice < 87) {
            resubscribe();
        } else if (choice < 97) {
            leave();
        } else {
            // Without a word: the session runs out.
            isGone = true;
        }
    }
}
