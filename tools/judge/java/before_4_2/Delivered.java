package judge;

import org.apache.kafka.common.message.ReadShareGroupStateSummaryResponseData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** How many records of a share partition were delivered: state does not have it before 4.2. */
final class Delivered {
    private Delivered() {}

    static void set(WriteShareGroupStateRequestData.PartitionData partition, int count) {}

    static void put(ObjectNode answer, ReadShareGroupStateSummaryResponseData.PartitionResult found) {}
}
