package judge;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.stream.IntStream;

import org.apache.kafka.common.protocol.types.SchemaException;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.ExtendedWorkerState;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeConnectProtocol;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** The data that a Connect worker sends to its group. The bytes are from Connect's own classes. */
final class Worker {
    static final String EAGER = "default";
    static final String COMPATIBLE = "compatible";
    static final String SESSIONED = "sessioned";
    private static final List<String> CONNECTORS = List.of("orders-sink", "jdbc", "c:1", "источник", "s3 sink");

    private final Chance chance;
    private final String url;
    private ExtendedAssignment running;

    Worker(Chance chance) {
        this.chance = chance;
        url = "http://worker-" + chance.between(0, 9) + ":8083/";
    }

    /** The metadata that it sends when it joins. */
    byte[] metadata(String protocol) {
        long configOffset = chance.spread(-1, 1L << 40);
        if (protocol.equals(EAGER)) {
            return Utils.toArray(ConnectProtocol.serializeMetadata(new ConnectProtocol.WorkerState(url, configOffset)));
        }
        ExtendedWorkerState state = new ExtendedWorkerState(url, configOffset, running);
        return Utils.toArray(IncrementalCooperativeConnectProtocol.serializeMetadata(state, protocol.equals(SESSIONED)));
    }

    /** The assignment of a worker that it makes as the leader of the group. */
    byte[] assignment(String protocol, String leader) {
        short error = chance.is(5) ? ConnectProtocol.Assignment.CONFIG_MISMATCH : ConnectProtocol.Assignment.NO_ERROR;
        long configOffset = chance.spread(-1, 1L << 40);
        if (protocol.equals(EAGER)) {
            return Utils.toArray(ConnectProtocol.serializeAssignment(
                new ConnectProtocol.Assignment(error, leader, url, configOffset, connectors(), tasks())));
        }
        boolean isSessioned = protocol.equals(SESSIONED);
        short version = isSessioned
            ? IncrementalCooperativeConnectProtocol.CONNECT_PROTOCOL_V2
            : IncrementalCooperativeConnectProtocol.CONNECT_PROTOCOL_V1;
        int delay = chance.is(30) ? chance.between(1, 300_000) : 0;
        return Utils.toArray(IncrementalCooperativeConnectProtocol.serializeAssignment(
            new ExtendedAssignment(version, error, leader, url, configOffset, connectors(), tasks(), connectors(), tasks(), delay),
            isSessioned));
    }

    /** Takes over the leader's assignment, which it reports when it joins again. */
    void run(byte[] assignment) {
        try {
            running = IncrementalCooperativeConnectProtocol.deserializeAssignment(ByteBuffer.wrap(assignment));
        } catch (SchemaException unreadable) {
            running = null;
        }
    }

    private List<String> connectors() {
        return chance.some(CONNECTORS, 0, 2);
    }

    private List<ConnectorTaskId> tasks() {
        return chance.some(CONNECTORS, 0, 3).stream()
            .flatMap(name -> IntStream.range(0, chance.between(1, 3)).mapToObj(number -> new ConnectorTaskId(name, number)))
            .toList();
    }
}
