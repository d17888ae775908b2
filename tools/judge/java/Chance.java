package judge;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Random;

import org.apache.kafka.common.Uuid;

/** The random source of a history, with one seed. */
final class Chance {
    private final Random random;

    Chance(long seed) {
        random = new Random(seed);
    }

    /** True in `percent` of a hundred cases. */
    boolean is(int percent) {
        return random.nextInt(100) < percent;
    }

    /** A number from `low` to `high`, both included. */
    int between(int low, int high) {
        return low + random.nextInt(high - low + 1);
    }

    /** A number from `low` to `high`, both included. Small distances from `low` are as likely as large ones. */
    long spread(long low, long high) {
        double logarithm = random.nextDouble() * Math.log1p(high - low);
        return low + Math.min(high - low, (long) Math.expm1(logarithm));
    }

    @SafeVarargs
    final <T> T of(T... choices) {
        return choices[random.nextInt(choices.length)];
    }

    /** One of them, or null if there are none. */
    <T> T oneOf(List<T> choices) {
        return choices.isEmpty() ? null : choices.get(random.nextInt(choices.size()));
    }

    /** Between `low` and `high` of them, or as many as there are, in any order. */
    <T> List<T> some(Collection<T> choices, int low, int high) {
        List<T> shuffled = new ArrayList<>(choices);
        Collections.shuffle(shuffled, random);
        return new ArrayList<>(shuffled.subList(0, Math.min(shuffled.size(), between(low, high))));
    }

    byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    /** An id as clients make them: its text does not start with a dash. */
    Uuid uuid() {
        Uuid id;
        do {
            id = new Uuid(random.nextLong(), random.nextLong());
        } while (id.toString().startsWith("-"));
        return id;
    }
}
