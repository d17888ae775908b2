import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The records of each partition that the clients of each group have read. Counts records that were read twice or
 * skipped.
 */
final class Ledger {
    private static final class Place {
        final BitSet seen = new BitSet();
        final List<Map<String, Long>> jumps = new ArrayList<>();
        long twice;
        long next = -1;
        long first = -1;
    }

    private final Map<String, Map<String, Place>> groups = new TreeMap<>();

    synchronized void read(String group, String topic, int partition, long offset) {
        Place place = groups.computeIfAbsent(group, any -> new TreeMap<>())
            .computeIfAbsent(topic + "-" + partition, any -> new Place());
        if (place.next >= 0 && place.next != offset) {
            place.jumps.add(Map.of("at", System.currentTimeMillis(), "from", place.next, "to", offset));
        }
        if (place.first < 0) {
            place.first = offset;
        }
        if (place.seen.get((int) offset)) {
            place.twice++;
        }
        place.seen.set((int) offset);
        place.next = offset + 1;
    }

    /** A redelivery is not a jump: a share group acknowledges one record after another. */
    synchronized void acknowledged(String group, String topic, int partition, long offset) {
        groups.computeIfAbsent(group, any -> new TreeMap<>())
            .computeIfAbsent(topic + "-" + partition, any -> new Place()).seen.set((int) offset);
    }

    synchronized Map<String, Object> of(String group) {
        Map<String, Object> all = new LinkedHashMap<>();
        groups.getOrDefault(group, Map.of()).forEach((name, place) -> all.put(name, Map.of(
            "first", place.first, "next", place.next, "read", place.seen.cardinality(), "twice", place.twice,
            "jumps", new ArrayList<>(place.jumps))));
        return all;
    }
}
