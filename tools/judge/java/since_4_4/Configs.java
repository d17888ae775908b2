package judge;

import java.util.Map;

import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;

/** The configurations of groups, of which none has its own, as a coordinator gets them since 4.4. */
final class Configs {
    private Configs() {}

    static GroupConfigManager of(GroupCoordinatorConfig groups, Map<String, String> settings) {
        return new GroupConfigManager(groups, ShareGroupConfig.fromProps(settings));
    }
}
