package judge;

import org.apache.kafka.common.message.ReadShareGroupStateSummaryResponseData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** How many records of a share partition were delivered, which state has since 4.2 (KIP-1226). */
final class Delivered {
    private Delivered() {}

    static void set(WriteShareGroupStateRequestData.PartitionData partition, int count) {
        partition.setDeliveryCompleteCount(count);
    }

    static void put(ObjectNode answer, ReadShareGroupStateSummaryResponseData.PartitionResult found) {
        answer.put("delivery_complete_count", found.deliveryCompleteCount());
    }
}
