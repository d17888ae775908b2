package judge;

import java.util.Map;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.share.ShareCoordinatorConfig;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.timeline.SnapshotRegistry;

import com.yammer.metrics.core.MetricsRegistry;

/** Makes empty coordinators of Kafka, with the settings of a broker. */
final class Kafka {
    static final String OFFSETS = "__consumer_offsets";
    static final String SHARE_STATE = "__share_group_state";

    private static final GroupCoordinatorMetrics GROUP_METRICS =
        new GroupCoordinatorMetrics(new MetricsRegistry(), new Metrics());
    private static final ShareCoordinatorMetrics SHARE_METRICS = new ShareCoordinatorMetrics(new Metrics());

    final GroupCoordinatorConfig groups;
    private final ShareCoordinatorConfig share;
    private final GroupConfigManager groupConfigs;

    Kafka(Map<String, String> settings) {
        groups = GroupCoordinatorConfig.fromProps(settings);
        share = new ShareCoordinatorConfig(new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, settings, false));
        groupConfigs = Configs.of(groups, settings);
    }

    /** A group coordinator. Its state can be read as of its snapshots. */
    GroupCoordinatorShard groupCoordinator(Clock clock, Timers timers, Tasks tasks, SnapshotRegistry snapshots) {
        return Calls.withoutAuthorizer(new GroupCoordinatorShard.Builder(groups, groupConfigs))
            .withLogContext(Release.LOGS)
            .withTime(clock)
            .withTimer(timers)
            .withExecutor(tasks)
            .withSnapshotRegistry(snapshots)
            .withCoordinatorMetrics(GROUP_METRICS)
            .withTopicPartition(new TopicPartition(OFFSETS, 0))
            .build();
    }

    ShareCoordinatorShard shareCoordinator(Clock clock, Timers timers, Tasks tasks, SnapshotRegistry snapshots) {
        return new ShareCoordinatorShard.Builder(share)
            .withLogContext(Release.LOGS)
            .withTime(clock)
            .withTimer(timers)
            .withExecutor(tasks)
            .withSnapshotRegistry(snapshots)
            .withCoordinatorMetrics(SHARE_METRICS)
            .withTopicPartition(new TopicPartition(SHARE_STATE, 0))
            .build();
    }
}
