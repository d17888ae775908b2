package judge;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.Collectors;

/**
 * The features of a history: a random subset of all, so that its features occur often, and rare features meet that
 * would otherwise crowd each other out (Groce et al., Swarm Testing, ISSTA 2012). Features that the release lacks are
 * never on.
 */
record Features(Set<Feature> on) {
    Features {
        on = on.stream().filter(feature -> !NewKinds.LACKING.contains(feature)).collect(Collectors.toUnmodifiableSet());
    }

    /**
     * A few kinds of groups, so that the groups are large, and about two thirds of the features that are possible with
     * them.
     */
    static Features drawn(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        Set<Feature> kinds = kinds(random);
        EnumSet<Feature> drawn = EnumSet.copyOf(kinds);
        for (Feature feature : EnumSet.complementOf(EnumSet.copyOf(Feature.KINDS))) {
            boolean isPossible = kinds.containsAll(Feature.KINDS_NEEDED.getOrDefault(feature, Set.of()));
            if (random.nextInt(3) < 2 && isPossible) {
                drawn.add(feature);
            }
        }
        return new Features(drawn);
    }

    private static Set<Feature> kinds(SplittableRandom random) {
        List<Feature> shuffled = new ArrayList<>(EnumSet.copyOf(Feature.KINDS));
        shuffled.removeAll(NewKinds.LACKING);
        Collections.shuffle(shuffled, new Random(random.nextLong()));
        EnumSet<Feature> kinds = EnumSet.copyOf(shuffled.subList(0, 1 + random.nextInt(3)));
        if (random.nextInt(3) == 0) {
            // Groups change between these two kinds.
            kinds.addAll(EnumSet.of(Feature.CLASSIC_GROUPS, Feature.CONSUMER_GROUPS));
        }
        return kinds;
    }

    /** Parses a text in the form of `toString`; `all` means all features. */
    static Features parse(String text) {
        return new Features(
            text.equals("all")
                ? EnumSet.allOf(Feature.class)
                : Arrays.stream(text.split(",")).map(name -> Feature.valueOf(name.toUpperCase(Locale.ROOT))).collect(Collectors.toSet())
        );
    }

    boolean has(Feature feature) {
        return on.contains(feature);
    }

    boolean hasAnyOf(Feature... features) {
        return Arrays.stream(features).anyMatch(on::contains);
    }

    /** The names in lower case, in the order of the enumeration, separated by commas. */
    @Override
    public String toString() {
        return on.stream().sorted().map(feature -> feature.name().toLowerCase(Locale.ROOT)).collect(Collectors.joining(","));
    }
}
