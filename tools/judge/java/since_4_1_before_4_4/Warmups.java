package judge;

import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.GroupMetadataManager;
import org.apache.kafka.coordinator.group.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.TaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/** Warm-up tasks: records and coordinators have them since 4.1, but no assignor of Kafka gives one. */
record Warmups(TaskAssignor assignor, Chance chance) implements TaskAssignor {
    /** Lets the assignors of a coordinator give some of the tasks to other members as well, to warm up. */
    @SuppressWarnings("unchecked") // the type of a private field
    static void give(GroupCoordinatorShard shard, Chance chance) {
        try {
            Field manager = GroupCoordinatorShard.class.getDeclaredField("groupMetadataManager");
            Field assignors = GroupMetadataManager.class.getDeclaredField("streamsGroupAssignors");
            manager.setAccessible(true);
            assignors.setAccessible(true);
            Object of = manager.get(shard);
            Map<String, TaskAssignor> warming = new HashMap<>();
            ((Map<String, TaskAssignor>) assignors.get(of)).forEach((name, each) -> warming.put(name, new Warmups(each, chance)));
            assignors.set(of, warming);
        } catch (ReflectiveOperationException other) {
            throw new IllegalStateException("Kafka keeps its assignors somewhere else", other);
        }
    }

    @Override
    public String name() {
        return assignor.name();
    }

    @Override
    public GroupAssignment assign(GroupSpec group, TopologyDescriber topology) {
        Map<String, MemberAssignment> members = new HashMap<>(assignor.assign(group, topology).members());
        for (String member : members.keySet().stream().sorted().toList()) {
            String other = chance.oneOf(members.keySet().stream().filter(each -> !each.equals(member)).sorted().toList());
            if (other != null && chance.is(60)) {
                members.put(other, warming(members.get(other), members.get(member).activeTasks()));
            }
        }
        return new GroupAssignment(members);
    }

    /** What a member has, with some tasks that it has in no other way. */
    private MemberAssignment warming(MemberAssignment member, Map<String, Set<Integer>> tasks) {
        Map<String, Set<Integer>> warmups = new HashMap<>();
        tasks.keySet().stream().sorted().forEach(subtopology -> {
            Set<Integer> partitions = new HashSet<>(chance.some(new TreeSet<>(tasks.get(subtopology)), 0, 2));
            partitions.removeAll(member.activeTasks().getOrDefault(subtopology, Set.of()));
            partitions.removeAll(member.standbyTasks().getOrDefault(subtopology, Set.of()));
            if (!partitions.isEmpty()) {
                warmups.put(subtopology, partitions);
            }
        });
        return new MemberAssignment(member.activeTasks(), member.standbyTasks(), warmups);
    }
}
