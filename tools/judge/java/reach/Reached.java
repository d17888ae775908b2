package judge;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Map;

import org.jacoco.agent.rt.IAgent;
import org.jacoco.agent.rt.RT;
import org.jacoco.core.tools.ExecFileLoader;

/**
 * The judge under JaCoCo's agent, which has to be started with output=none: what was run through goes to a file of each
 * phase in the folder, when the input ends.
 */
public final class Reached {
    private Reached() {}

    /** The argument is the folder. */
    public static void main(String[] arguments) throws IOException {
        IAgent agent = RT.getAgent();
        Map<Phase, ExecFileLoader> reached = new EnumMap<>(Phase.class);
        for (Phase phase : Phase.values()) {
            reached.put(phase, new ExecFileLoader());
        }
        // What was run through before anything is written is of no phase.
        agent.reset();
        Phase.listen(phase -> take(agent, reached.get(phase)));
        Main.main(arguments);
        Phase.flush();
        for (Phase phase : Phase.values()) {
            String name = phase.name().toLowerCase() + "-" + ProcessHandle.current().pid() + ".exec";
            reached.get(phase).save(Path.of(arguments[0], name).toFile(), false);
        }
    }

    private static void take(IAgent agent, ExecFileLoader reached) {
        try {
            reached.load(new ByteArrayInputStream(agent.getExecutionData(true)));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
