package judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * Executes the lines of its input, in a folder: `write SEED` writes the history of a seed with its answers, `log SEED`
 * without them, `answer NAME` the answers to an existing log. A seed may be followed by the features of its history,
 * instead of those that are drawn. After each line, the same line is printed.
 */
public final class Main {
    private Main() {}

    /** The argument is the folder. */
    public static void main(String[] arguments) throws IOException {
        Path folder = Path.of(arguments[0]);
        Randomness.install();
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("answer")) {
                Recorded.read(folder, words[1]).answer(folder);
            } else {
                long seed = Long.parseLong(words[1]);
                Features features = words.length > 2 ? Features.parse(words[2]) : Features.drawn(seed);
                new History(seed, features).write(folder, words[0].equals("write"));
            }
            System.out.println(line);
        }
    }
}
