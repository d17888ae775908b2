package judge;

import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.coordinator.share.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.coordinator.share.generated.ShareSnapshotKey;
import org.apache.kafka.coordinator.share.generated.ShareUpdateKey;
import org.apache.kafka.timeline.SnapshotRegistry;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * What a share coordinator answers that has loaded a log up to a cut. All about states is asked of one; of another each
 * time, what it would write, since it remembers what it has written.
 */
final class ShareAnswers {
    // No leader is newer, so none is refused; what it would have written is never replayed. 4.4 refuses -1.
    private static final int ANY_LEADER = Integer.MAX_VALUE;

    private record Place(String group, Uuid topic, int partition) {}

    private final Kafka kafka;
    private final Loaded loaded;
    private final long cut;
    private final long now;
    private final Topics topics;
    private final ShareCoordinatorShard states;
    private final List<ObjectNode> answers = new ArrayList<>();

    /** Raises Refused. */
    ShareAnswers(Kafka kafka, Loaded loaded, Recorded.Moment moment) {
        this.kafka = kafka;
        this.loaded = loaded;
        cut = moment.cut();
        now = moment.now();
        topics = moment.topics();
        states = load(now);
    }

    /** The lines for this cut. */
    List<ObjectNode> all(List<Long> snapshots) {
        for (Place place : loaded.upTo(cut).stream().map(ShareAnswers::place).distinct().toList()) {
            readState(place);
            readSummary(place);
        }
        ObjectNode redundant = question("last_redundant_offset");
        states.lastRedundantOffset().response()
            .ifPresentOrElse(offset -> redundant.put("answer", offset), () -> redundant.putNull("answer"));
        snapshots.forEach(this::coldSnapshots);
        return answers;
    }

    private static Place place(CoordinatorRecord record) {
        if (record.key() instanceof ShareSnapshotKey key) {
            return new Place(key.groupId(), key.topicId(), key.partition());
        }
        ShareUpdateKey key = (ShareUpdateKey) record.key();
        return new Place(key.groupId(), key.topicId(), key.partition());
    }

    private ShareCoordinatorShard load(long time) {
        Clock clock = new Clock(now);
        SnapshotRegistry snapshots = new SnapshotRegistry(Release.LOGS);
        ShareCoordinatorShard shard = kafka.shareCoordinator(clock, new Timers(clock), new Tasks(), snapshots);
        loaded.into(shard, cut, topics);
        clock.set(time);
        return shard;
    }

    private ObjectNode question(String name) {
        ObjectNode line = Json.object().put("cut", cut).put("question", name);
        answers.add(line);
        return line;
    }

    private ObjectNode question(String name, Place place) {
        return question(name).put("group", place.group())
            .put("topic_id", place.topic().toString()).put("partition", place.partition());
    }

    private void readState(Place place) {
        var request = new ReadShareGroupStateRequestData().setGroupId(place.group()).setTopics(List.of(
            new ReadShareGroupStateRequestData.ReadStateData().setTopicId(place.topic()).setPartitions(List.of(
                new ReadShareGroupStateRequestData.PartitionData()
                    .setPartition(place.partition()).setLeaderEpoch(ANY_LEADER)))));
        var found = states.readStateAndMaybeUpdateLeaderEpoch(request).response().results().get(0).partitions().get(0);
        ObjectNode answer = question("read_state", place).putObject("answer");
        if (found.errorCode() != Errors.NONE.code()) {
            answer.put("error", Errors.forCode(found.errorCode()).name()).put("message", found.errorMessage());
            return;
        }
        answer.put("start_offset", found.startOffset()).put("state_epoch", found.stateEpoch());
        ArrayNode batches = answer.putArray("batches");
        for (var batch : found.stateBatches()) {
            batches.addObject().put("first_offset", batch.firstOffset()).put("last_offset", batch.lastOffset())
                .put("delivery_state", batch.deliveryState()).put("delivery_count", batch.deliveryCount());
        }
    }

    private void readSummary(Place place) {
        var request = new ReadShareGroupStateSummaryRequestData().setGroupId(place.group()).setTopics(List.of(
            new ReadShareGroupStateSummaryRequestData.ReadStateSummaryData().setTopicId(place.topic()).setPartitions(
                List.of(new ReadShareGroupStateSummaryRequestData.PartitionData()
                    .setPartition(place.partition()).setLeaderEpoch(ANY_LEADER)))));
        var found = states.readStateSummary(request).response().results().get(0).partitions().get(0);
        ObjectNode answer = question("read_summary", place).putObject("answer");
        if (found.errorCode() != Errors.NONE.code()) {
            answer.put("error", Errors.forCode(found.errorCode()).name()).put("message", found.errorMessage());
            return;
        }
        answer.put("start_offset", found.startOffset()).put("leader_epoch", found.leaderEpoch())
            .put("state_epoch", found.stateEpoch());
        Delivered.put(answer, found);
    }

    private void coldSnapshots(long time) {
        ObjectNode line = question("cold_snapshots").put("at_ms", time);
        List<ObjectNode> snapshots = new ArrayList<>();
        for (CoordinatorRecord record : load(time).snapshotColdPartitions().records()) {
            ObjectNode snapshot = Json.object().put("type", record.key().apiKey());
            snapshot.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
            snapshot.set("value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(
                record.value().message(), record.value().version()));
            snapshots.add(snapshot);
        }
        snapshots.sort(Json.ORDER);
        line.putArray("answer").addAll(snapshots);
    }
}
