package judge;

import java.util.Map;
import java.util.TreeMap;

/** The broker properties of a history that differ from the defaults. */
record Settings(Map<String, String> properties, long retentionMs) {
    private static final int MINUTE = 60_000;

    static Settings random(Chance chance, Features features) {
        int minutes = chance.of(1, 1, 2, 2, 5, 10, 30, 60, 360, 1440, 10080);
        long retention = (long) minutes * MINUTE;
        // Long enough in many histories for members to outlive commits.
        int session = (int) Math.min(6 * 60 * MINUTE, chance.of(30_000L, 45_000L, 120_000L, 2 * retention));
        Map<String, String> set = new TreeMap<>();
        set.put("offsets.retention.minutes", String.valueOf(minutes));
        set.put("offsets.retention.check.interval.ms", chance.of("5000", "30000", "60000", "600000", "600000"));
        set.put("offset.metadata.max.bytes", chance.of("4096", "4096", "200"));
        set.put("group.initial.rebalance.delay.ms", chance.of("0", "3000"));
        set.put("group.max.session.timeout.ms", String.valueOf(Math.max(30 * MINUTE, session)));
        set.put("group.consumer.migration.policy", migration(features));
        set.put("group.consumer.regex.refresh.interval.ms", String.valueOf(Math.max(10 * MINUTE, session)));
        set.put("group.streams.initial.rebalance.delay.ms", chance.of("0", "3000"));
        set.put("group.streams.num.standby.replicas", features.has(Feature.STANDBY_TASKS) ? chance.of("1", "2") : "0");
        for (String kind : new String[] {"consumer", "share", "streams"}) {
            String prefix = "group." + kind + ".";
            set.put(prefix + "session.timeout.ms", String.valueOf(session));
            set.put(prefix + "min.session.timeout.ms", String.valueOf(Math.min(45_000, session)));
            set.put(prefix + "max.session.timeout.ms", String.valueOf(Math.max(MINUTE, session)));
            boolean isBatched = features.has(Feature.BATCHED_ASSIGNMENTS);
            set.put(prefix + "assignment.interval.ms", isBatched ? chance.of("0", "1000", "5000") : "0");
            set.put(prefix + "assignor.offload.enable", isBatched ? chance.of("true", "true", "false") : "false");
        }
        set.put("share.coordinator.snapshot.update.records.per.snapshot", chance.of("0", "2", "5", "20"));
        set.put("share.coordinator.cold.partition.snapshot.interval.ms", chance.of("60000", "300000"));
        return new Settings(set, retention);
    }

    private static String migration(Features features) {
        if (features.has(Feature.CONVERSIONS)) {
            return features.has(Feature.DOWNGRADES) ? "bidirectional" : "upgrade";
        }
        return features.has(Feature.DOWNGRADES) ? "downgrade" : "disabled";
    }

    int integer(String property) {
        return Integer.parseInt(properties.get(property));
    }
}
