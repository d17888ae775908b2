import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;

/** The requests of an administrator, sent with Kafka's admin client. */
final class Chief {
    private final Admin admin;

    Chief(String bootstrap) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("client.id", "chief");
        properties.put("reconnect.backoff.max.ms", "1000");
        admin = Admin.create(properties);
    }

    Object done(JsonNode asked) throws Exception {
        String topic = asked.path("topic").asText();
        String group = asked.path("group").asText();
        switch (asked.get("do").asText()) {
            case "create":
                NewTopic made = new NewTopic(topic, asked.get("partitions").asInt(), (short) 1);
                Map<String, String> configs = new HashMap<>();
                asked.path("config").properties().forEach(each -> configs.put(each.getKey(), each.getValue().asText()));
                admin.createTopics(List.of(made.configs(configs))).all().get();
                return topic;
            case "delete":
                admin.deleteTopics(List.of(topic)).all().get();
                return topic;
            case "grow":
                admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(asked.get("partitions").asInt())))
                    .all().get();
                return topic;
            case "configure":
                ConfigResource.Type type = ConfigResource.Type.valueOf(asked.path("type").asText("TOPIC"));
                List<AlterConfigOp> changes = new ArrayList<>();
                asked.get("config").properties().forEach(each -> changes.add(new AlterConfigOp(
                    new ConfigEntry(each.getKey(), each.getValue().asText()), AlterConfigOp.OpType.SET)));
                admin.incrementalAlterConfigs(Map.of(
                    new ConfigResource(type, asked.get("resource").asText()), changes)).all().get();
                return true;
            case "quota":
                ClientQuotaEntity entity = new ClientQuotaEntity(
                    Map.of(ClientQuotaEntity.CLIENT_ID, asked.get("client").asText()));
                admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op(
                    asked.get("name").asText(), asked.get("value").asDouble()))))).all().get();
                return true;
            case "purge":
                Map<TopicPartition, RecordsToDelete> before = new HashMap<>();
                offsets(asked).forEach((place, offset) -> before.put(place, RecordsToDelete.beforeOffset(offset)));
                admin.deleteRecords(before).all().get();
                return true;
            case "alter-offsets":
                Map<TopicPartition, OffsetAndMetadata> chosen = new HashMap<>();
                offsets(asked).forEach((place, offset) -> chosen.put(place, new OffsetAndMetadata(offset)));
                admin.alterConsumerGroupOffsets(group, chosen).all().get();
                return true;
            case "delete-group":
                admin.deleteConsumerGroups(List.of(group)).all().get();
                return group;
            case "committed":
                Map<String, Long> committed = new TreeMap<>();
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((place, offset) -> {
                    if (offset != null) {
                        committed.put(place.toString(), offset.offset());
                    }
                });
                return committed;
            case "ends":
                return ends(asked, OffsetSpec.latest());
            case "starts":
                return ends(asked, OffsetSpec.earliest());
            default:
                throw new IllegalArgumentException("unknown: " + asked);
        }
    }

    private Map<String, Long> ends(JsonNode asked, OffsetSpec which) throws ExecutionException, InterruptedException {
        List<String> topics = new ArrayList<>();
        asked.get("topics").forEach(each -> topics.add(each.asText()));
        Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
        admin.describeTopics(topics).allTopicNames().get().forEach((name, topic) -> topic.partitions()
            .forEach(each -> wanted.put(new TopicPartition(name, each.partition()), which)));
        Map<String, Long> ends = new TreeMap<>();
        admin.listOffsets(wanted).all().get().forEach((place, end) -> ends.put(place.toString(), end.offset()));
        return ends;
    }

    private static Map<TopicPartition, Long> offsets(JsonNode asked) {
        Map<TopicPartition, Long> offsets = new HashMap<>();
        asked.get("offsets").properties().forEach(each -> {
            int dash = each.getKey().lastIndexOf('-');
            TopicPartition place = new TopicPartition(each.getKey().substring(0, dash),
                Integer.parseInt(each.getKey().substring(dash + 1)));
            offsets.put(place, each.getValue().asLong());
        });
        return offsets;
    }
}
