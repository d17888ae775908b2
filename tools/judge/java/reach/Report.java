package judge;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.jacoco.core.analysis.Analyzer;
import org.jacoco.core.analysis.CoverageBuilder;
import org.jacoco.core.analysis.IClassCoverage;
import org.jacoco.core.analysis.ICounter;
import org.jacoco.core.analysis.IMethodCoverage;
import org.jacoco.core.tools.ExecFileLoader;

/**
 * Prints what the files of `Reached` in some folders amount to: by phase, and as `ALL`, the methods of every class of the
 * given jars, each with its lines: number, instructions and branches of it that were missed, and that were run through.
 */
public final class Report {
    private static final String GENERATED = "/generated/";

    private Report() {}

    /** The arguments are the folders, with colons between them, and the jars. */
    public static void main(String[] arguments) throws IOException {
        List<Path> folders = Stream.of(arguments[0].split(":")).map(Path::of).toList();
        List<String> jars = List.of(arguments).subList(1, arguments.length);
        ObjectNode report = Json.object();
        ExecFileLoader all = new ExecFileLoader();
        for (Phase phase : Phase.values()) {
            ExecFileLoader reached = new ExecFileLoader();
            for (Path file : files(folders, phase.name().toLowerCase() + "-")) {
                reached.load(file.toFile());
                all.load(file.toFile());
            }
            report.set(phase.name(), classes(reached, jars));
        }
        report.set("ALL", classes(all, jars));
        System.out.println(report);
    }

    private static List<Path> files(List<Path> folders, String begin) throws IOException {
        List<Path> found = new ArrayList<>();
        for (Path folder : folders) {
            try (Stream<Path> files = Files.list(folder)) {
                files.filter(file -> file.getFileName().toString().startsWith(begin)
                    && file.getFileName().toString().endsWith(".exec")).sorted().forEach(found::add);
            }
        }
        return found;
    }

    private static ObjectNode classes(ExecFileLoader reached, List<String> jars) throws IOException {
        CoverageBuilder builder = new CoverageBuilder();
        Analyzer analyzer = new Analyzer(reached.getExecutionDataStore(), builder);
        for (String jar : jars) {
            analyzer.analyzeAll(Path.of(jar).toFile());
        }
        var byName = new TreeMap<String, IClassCoverage>();
        builder.getClasses().forEach(each -> byName.put(each.getName(), each));
        ObjectNode classes = Json.object();
        byName.forEach((name, found) -> {
            if (!name.contains(GENERATED)) {
                ArrayNode methods = classes.putArray(name);
                found.getMethods().forEach(method -> methods.add(method(method)));
            }
        });
        return classes;
    }

    private static ObjectNode method(IMethodCoverage method) {
        ObjectNode told = Json.object().put("name", method.getName()).put("signature", method.getDesc());
        ArrayNode lines = told.putArray("lines");
        for (int number = method.getFirstLine(); number <= method.getLastLine() && number >= 0; number++) {
            var line = method.getLine(number);
            if (line.getStatus() != ICounter.EMPTY) {
                ICounter instructions = line.getInstructionCounter();
                ICounter branches = line.getBranchCounter();
                lines.addArray().add(number)
                    .add(instructions.getMissedCount()).add(instructions.getCoveredCount())
                    .add(branches.getMissedCount()).add(branches.getCoveredCount());
            }
        }
        return told;
    }
}
