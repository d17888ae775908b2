package judge;

import org.apache.kafka.common.protocol.ApiKeys;

/** A client in a group. Its actions depend on the coordinator's earlier answers. */
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

    /** Joins, or sends a heartbeat. */
    abstract void heartbeat();

    /** Commits offsets as this member. */
    abstract void commit();

    /** Leaves. Some clients return later with the same instance id. */
    abstract void leave();

    /** Subscribes to something else. */
    abstract void resubscribe();

    Client as(ApiKeys api) {
        return Client.of(clientId, address, api);
    }

    /** Does one action, mostly a heartbeat. */
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
            // Silently: the session times out.
            isGone = true;
        }
    }
}
