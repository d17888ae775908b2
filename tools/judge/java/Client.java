package judge;

import java.net.InetAddress;
import java.net.UnknownHostException;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/** Who sends a request: a client's id and address, and the version of the request. */
record Client(String clientId, InetAddress clientAddress, int requestType, int requestVersion)
    implements AuthorizableRequestContext {

    /** A client at an address of four bytes that sends the newest version of `api`. */
    static Client of(String clientId, byte[] address, ApiKeys api) {
        return of(clientId, address, api, api.latestVersion());
    }

    static Client of(String clientId, byte[] address, ApiKeys api, short version) {
        try {
            return new Client(clientId, InetAddress.getByAddress(address), api.id, version);
        } catch (UnknownHostException impossible) {
            throw new IllegalArgumentException(impossible);
        }
    }

    @Override
    public String listenerName() {
        return "PLAINTEXT";
    }

    @Override
    public SecurityProtocol securityProtocol() {
        return SecurityProtocol.PLAINTEXT;
    }

    @Override
    public KafkaPrincipal principal() {
        return KafkaPrincipal.ANONYMOUS;
    }

    @Override
    public int correlationId() {
        return 0;
    }
}
