package judge;

import java.net.InetAddress;
import java.net.UnknownHostException;

import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/** The sender of a request: a client's id and address, and the version of the request. */
final class Client extends RequestContext {
    private Client(RequestHeader header, InetAddress address) {
        super(
            header, "", address, KafkaPrincipal.ANONYMOUS, new ListenerName("PLAINTEXT"), SecurityProtocol.PLAINTEXT,
            ClientInformation.EMPTY, false
        );
    }

    /** A client at an address of four bytes that sends the newest version of `api`. */
    static Client of(String clientId, byte[] address, ApiKeys api) {
        return of(clientId, address, api, api.latestVersion());
    }

    static Client of(String clientId, byte[] address, ApiKeys api, short version) {
        try {
            return new Client(new RequestHeader(api, version, clientId, 0), InetAddress.getByAddress(address));
        } catch (UnknownHostException impossible) {
            throw new IllegalArgumentException(impossible);
        }
    }
}
