import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

import org.apache.kafka.message.MessageGenerator;
import org.apache.kafka.message.MessageSpec;
import org.apache.kafka.message.checker.EvolutionVerifier;

/**
 * Prints the verdicts of Kafka's EvolutionVerifier on pairs of specs. Each line of input has two paths with a tab
 * between them, the older spec first. Each line of output is `accepts`, or the class and the message of the exception.
 * Class path: generator of one release, jackson-databind with its own two jars.
 */
public final class VerifyEvolution {
    private VerifyEvolution() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader pairs = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = pairs.readLine(); line != null; line = pairs.readLine()) {
            String[] paths = line.split("\t");
            System.out.println(verdict(new File(paths[0]), new File(paths[1])));
        }
    }

    private static String verdict(File older, File newer) {
        try {
            new EvolutionVerifier(read(older), read(newer)).verify();
            return "accepts";
        } catch (Exception refusal) {
            return refusal.getClass().getSimpleName() + ": " + refusal.getMessage().replace('\n', ' ');
        }
    }

    private static MessageSpec read(File spec) throws Exception {
        return MessageGenerator.JSON_SERDE.readValue(spec, MessageSpec.class);
    }
}
