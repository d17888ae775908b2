package judge;

import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.timeline.SnapshotRegistry;

/** Only whether a coordinator loads a log up to a cut; the log may be one that no coordinator would leave. */
record Loading(Kafka kafka, Loaded loaded, Recorded.Moment moment) {
    /** A line without an answer. Throws Refused. */
    ObjectNode answer(String topic) {
        Clock clock = new Clock(moment.now());
        Timers timers = new Timers(clock);
        SnapshotRegistry snapshots = new SnapshotRegistry(Release.LOGS);
        if (topic.equals(Kafka.OFFSETS)) {
            loaded.into(kafka.groupCoordinator(clock, timers, new Tasks(), snapshots), moment.cut(), moment.topics());
        } else {
            loaded.into(kafka.shareCoordinator(clock, timers, new Tasks(), snapshots), moment.cut(), moment.topics());
        }
        return Json.object().put("cut", moment.cut()).put("question", "loading");
    }
}
