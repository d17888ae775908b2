"""Clusters brought into trouble: each function plays one kind on a scene and returns the truth of it."""

from __future__ import annotations

import re
import time
from typing import Any

from kafka_records_runtime.kafka.partitioner import partition_for
from tools.incidents.kinds import kind
from tools.incidents.scene import Scene, now
from tools.incidents.truth import Truth, incident


@kind("resized_offsets_topic", "__consumer_offsets gets more partitions: coordinators look for groups elsewhere")
def resized_offsets_topic(scene: Scene) -> Truth:
    """An operator wants more partitions to spread the load."""
    before, after = 4, scene.random.choice([7, 10, 13, 25])
    scene.surround(8)
    scene.wait(20, 28)
    altered = now()
    scene.crew.ask("grow", topic="__consumer_offsets", partitions=after)
    scene.wait(2, 5)
    scene.broker.stop()
    scene.broker.start()
    since = now()
    scene.wait(22, 28)
    company = scene.company
    moved = [group for group in company.groups if partition_for(group, before) != partition_for(group, after)]
    truth = incident("resized_offsets_topic", moved, ["__consumer_offsets"])
    twice = {group: scene.read_twice(group) for group in moved}
    truth.planted = (
        f"__consumer_offsets was altered from {before} to {after} partitions, then the broker was restarted. "
        f"{len(moved)} of {len(company.groups)} groups are kept elsewhere now: their coordinators know nothing of them."
    )
    truth.since, truth.since_also, truth.since_margin_ms = since, [altered], 15_000
    truth.scale = {"groups": len(moved)}
    truth.conclusion = (
        "The number of partitions cannot be reduced: stop the consumers, write the last offsets of each group from "
        "the old partition into the new one, and start them again."
    )
    truth.proof = "the same group in two partitions; the new partitions begin at the restart; PartitionRecords"
    truth.named = ["__consumer_offsets", f"\\b{after}\\b"]
    truth.cause = ["partitions", f"\\b{before}\\b"]
    truth.first_step = ["reset-offsets|alter.*offsets|write .*offsets|old (copies|copy|partition|offsets)"]
    truth.never_say("retention|expired", "no offset expired")
    truth.never_say("recreated|recreated", "no topic was recreated")
    truth.details = {"read_twice": twice, "reset_to_latest": company.latest, "altered": altered, "to": after}
    return truth


@kind("two_applications", "two applications with different topics share a group.id by accident")
def two_applications(scene: Scene) -> Truth:
    """For three of four seeds, the second one is restarted again and again, and each time the first one is
    rebalanced."""
    scene.surround(6)
    group = scene.names.group()
    first, second = scene.topic(3), scene.topic(2)
    scene.producer([first, second], scene.random.uniform(10, 25))
    ours, theirs = scene.names.group(), scene.names.group()
    members = [scene.consumer(f"{ours}-{number}", group, [first]) for number in range(scene.random.randint(2, 3))]
    scene.wait(18, 25)
    since = now()
    restarts = scene.random.random() < 0.75
    more: dict[str, Any] = (
        {"life": scene.random.randint(4000, 8000), "restart": scene.random.randint(500, 1500)} if restarts else {}
    )
    other = scene.consumer(f"{theirs}-0", group, [second], **more)
    scene.wait(40, 50)
    crashes = len(scene.crew.seen("crashed", [other]))
    truth = incident("two_applications", [group], [first, second])
    truth.planted = (
        f"{ours} (client ids {', '.join(members)}, topic {first}) and {theirs} (client id {other}, topic {second}) "
        f"share the group.id {group} by accident; {theirs} was restarted {crashes} times."
    )
    truth.members = [*members, other]
    truth.since = since
    truth.scale = {"generations": 2 * crashes} if crashes else {}
    truth.scale_margin = 0.3
    truth.conclusion = f"Give {theirs} a group.id of its own and carry its offsets of {second} over."
    truth.proof = "the members of a generation subscribe to disjoint topics, with client ids of two families"
    truth.named = [f"\\b{group}\\b", "application|subscri"]
    truth.cause = ["two|different|disjoint|share", re.escape(theirs)]
    truth.first_step = ["group\\.?id of its own|own group|another group\\.id|different group|group of its own"]
    truth.never_say("(raise|increase|longer)[^.]*(session\\.timeout|max\\.poll)", "timeouts have nothing to do with it")
    return truth


@kind("poison_record", "all members of a group fail on one record, leave, are restarted, for ever")
def poison_record(scene: Scene) -> Truth:
    """The records before it are committed each time."""
    scene.surround(6)
    group = scene.names.group()
    count = scene.random.randint(2, 4)
    topic = scene.topic(count)
    rate = scene.random.uniform(6, 16)
    scene.producer([topic], rate, count)
    place = scene.random.randrange(count)
    offset = int(rate / count * scene.random.uniform(18, 24))
    restart = scene.random.randint(700, 2000)
    protocol = scene.random.choice(["classic", "classic", "consumer"])
    poison = f"{topic}-{place}@{offset}"
    members = [
        scene.consumer(f"{group}-{number}", group, [topic], protocol, poison=poison, restart=restart)
        for number in range(2)
    ]
    since = scene.crew.wait_for("crashed", members).at
    scene.wait(40, 50)
    crashes = len(scene.crew.seen("crashed", members))
    end = scene.crew.offsets("ends", [topic])[f"{topic}-{place}"]
    truth = incident("poison_record", [group], [topic])
    truth.planted = (
        f"The members of {group} ({protocol}) throw on {poison}, commit what came before, close and are restarted "
        f"{restart} ms later: {crashes} times."
    )
    truth.partitions, truth.members = [f"{topic}-{place}"], members
    truth.since = since
    truth.scale = {"stuck": end - offset}
    truth.conclusion = f"Look at {topic}-{place} offset {offset}; skip it or put it aside, and fix the application."
    truth.proof = f"the offset of {topic}-{place} stays {offset}; members leave soon after they join, as new members"
    truth.named = [f"\\b{group}\\b", re.escape(topic)]
    truth.cause = [f"\\b{offset}\\b", "record"]
    truth.first_step = [f"\\b{offset}\\b", f"\\b{offset + 1}\\b"]
    truth.never_say("(raise|increase|longer)[^.]*(session\\.timeout|max\\.poll)", "no member timed out")
    truth.details = {"offset": offset, "crashes": crashes, "protocol": protocol}
    return truth


@kind("foreign_offsets", "a script writes the offsets of another cluster for groups that never ran here")
def foreign_offsets(scene: Scene) -> Truth:
    """Then one group starts, and begins where auto.offset.reset says. The other one has not started yet."""
    scene.surround(6)
    count = scene.random.randint(2, 4)
    topic = scene.topic(count)
    scene.producer([topic], scene.random.uniform(15, 40), count)
    started, waiting = scene.names.group(), scene.names.group()
    scene.wait(20, 28)
    base = scene.random.randint(10**5, 9 * 10**6)
    chosen = {f"{topic}-{number}": base + scene.random.randint(0, 4000) for number in range(count)}
    since = now()
    for group in (started, waiting):
        scene.crew.ask("alter-offsets", group=group, offsets=chosen)
    scene.wait(12, 20)
    reset = scene.random.choice(["latest", "latest", "earliest"])
    member = scene.consumer(f"{started}-0", started, [topic], config={"auto.offset.reset": reset})
    jumped = scene.crew.wait_for("assigned", [member]).at
    scene.wait(20, 25)
    ledger = scene.crew.ask("ledger", group=started)
    lost = sum(place["first"] for place in ledger.values())
    truth = incident("foreign_offsets", [started, waiting], [topic])
    truth.planted = (
        f"A script wrote offsets of another cluster (from {base} on, the logs are far shorter) for {started} and "
        f"{waiting}. {started} started later with auto.offset.reset={reset}"
        + (f" and never reads the {lost} records from before." if lost else " and reads from the beginning.")
    )
    truth.members = [member]
    truth.since, truth.since_also = since, [jumped]
    truth.scale = {"lost": lost} if lost else {}
    truth.conclusion = f"Set the offsets of {waiting} by time or to the earliest before it starts" + (
        f"; read the {lost} records that {started} skipped." if lost else "."
    )
    truth.proof = "written while the groups had no member ever, beyond the end of the log then, with its topic id"
    truth.named = [f"\\b{waiting}\\b|\\b{started}\\b", "beyond|past the end|another cluster"]
    truth.cause = [
        "another cluster|other cluster|elsewhere|never had (a )?member|without (ever )?(a )?member|admin|tool"
    ]
    truth.first_step = ["to-datetime|to-earliest|earliest|by time|by-duration"]
    truth.never_say("to-latest", "that would lose what is left")
    truth.never_say("was cut|truncated|recreated|recreated|unclean", "the log is whole and the topic id is the same")
    truth.never_say("consumed a second time|consumed again|read twice", "nothing was consumed twice")
    return truth


@kind("expired_offsets", "a group is away for longer than the retention of offsets, and starts again elsewhere",
      {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "2000"})  # fmt: skip
def expired_offsets(scene: Scene) -> Truth:
    """It begins where auto.offset.reset says."""
    scene.surround(6)
    count = scene.random.randint(2, 4)
    topic = scene.topic(count)
    scene.producer([topic], scene.random.uniform(10, 30), count)
    group = scene.names.group()
    reset = scene.random.choice(["earliest", "earliest", "latest"])
    protocol = scene.random.choice(["classic", "consumer"])
    config = {"auto.offset.reset": reset}
    member = scene.consumer(f"{group}-0", group, [topic], protocol, config=config)
    scene.wait(14, 20)
    scene.stop(member)
    left = now()
    while scene.crew.ask("committed", group=group):
        time.sleep(0.2)
    expired = now()
    scene.wait(3, 6)
    returned = now()
    member = scene.consumer(f"{group}-0", group, [topic], protocol, config=config)
    scene.wait(16, 20)
    twice, (lost, _) = scene.read_twice(group), scene.jumped(group)
    truth = incident("expired_offsets", [group], [topic])
    truth.planted = (
        f"{group} ({protocol}) left and came back {(returned - left) // 1000} s later, when its offsets had expired "
        f"(offsets.retention.minutes=1); auto.offset.reset={reset}."
    )
    truth.members = [member]
    truth.since, truth.since_also = expired, [returned]
    truth.scale = {"read_twice": twice} if reset == "earliest" else {"lost": lost}
    truth.going_on = False
    truth.conclusion = "Raise offsets.retention.minutes above the longest time that the group is away."
    truth.proof = "tombstones of all its offsets, 60 s after it became empty, then first commits from elsewhere"
    truth.named = [f"\\b{group}\\b", "expire"]
    truth.cause = ["expire", "retention|no members|empty"]
    truth.first_step = ["offsets\\.retention\\.minutes|--retention|reset-offsets"]
    truth.never_say(
        "deleted by (an )?(operator|admin)|kafka-consumer-groups --delete-offsets deleted", "the broker did"
    )
    truth.report_arguments = ["--retention", "1m"]
    truth.details = {"left": left, "expired": expired, "returned": returned, "reset": reset}
    return truth


@kind("share_archived", "a share group gives up on records: archived after the last delivery, or rejected")
def share_archived(scene: Scene) -> Truth:
    """The start offset moves past them, so that the present state no longer shows them."""
    scene.surround(6)
    count = scene.random.randint(1, 2)
    topic = scene.topic(count)
    scene.producer([topic], scene.random.uniform(10, 20), count)
    group = scene.names.group()
    scene.crew.ask("configure", type="GROUP", resource=group, config={"share.auto.offset.reset": "earliest"})
    refusal = scene.random.choice(["RELEASE", "RELEASE", "REJECT"])
    member = f"{group}-0"
    scene.crew.ask("share", name=member, group=group, topics=[topic], refusal=refusal)
    scene.wait(14, 20)
    every = scene.random.randint(7, 15)
    begun = now()
    scene.change(member, refused=every)
    scene.wait(38, 45)
    scene.change(member, refused=0)
    since = scene.crew.wait_for("refused", [member], begun).at
    scene.wait(8, 10)
    archived = len(scene.crew.seen("refused", [member]))
    truth = incident("share_archived", [group], [topic])
    how = "releases" if refusal == "RELEASE" else "rejects"
    truth.planted = f"The share group {group} {how} every {every}th record: about {archived} records are archived."
    truth.members = [member]
    truth.since, truth.going_on = since, False
    truth.scale, truth.scale_margin = {"lost": archived}, 0.2
    truth.conclusion = "Look at the records that were archived and at the application; put such records aside."
    truth.proof = "state batches with delivery state 4 (archived) in __share_group_state"
    truth.named = [f"\\b{group}\\b", "archived"]
    truth.cause = ["deliver" if refusal == "RELEASE" else "reject"]
    truth.first_step = ["share_|record|dead.letter|application|consumer"]
    truth.details = {"refusal": refusal, "every": every}
    return truth


@kind("partitions_not_given_up", "a member hangs in its application and keeps partitions that others wait for")
def partitions_not_given_up(scene: Scene) -> Truth:
    """It is a member of the consumer protocol, whose background thread continues to send heartbeats."""
    scene.surround(6)
    count = scene.random.randint(4, 6)
    topic = scene.topic(count)
    scene.producer([topic], scene.random.uniform(10, 25), count)
    group = scene.names.group()
    config = {"max.poll.interval.ms": "600000"}
    holder = scene.consumer(f"{group}-0", group, [topic], "consumer", config=config)
    scene.wait(14, 20)
    scene.change(holder, stalled=True)
    hung = now()
    scene.wait(5, 9)
    since = now()
    waiting = [
        scene.consumer(f"{group}-{number}", group, [topic], "consumer", config=config)
        for number in range(1, scene.random.randint(2, 3))
    ]
    scene.wait(38, 45)
    truth = incident("partitions_not_given_up", [group], [topic])
    truth.planted = (
        f"The application of {holder} hangs, its heartbeats go on. {', '.join(waiting)} joined and wait for "
        "partitions that it does not give up; nothing of the topic is read."
    )
    truth.members = [holder, *waiting]
    truth.since, truth.since_also, truth.since_margin_ms = since, [hung], 6000
    truth.scale = {"stuck": scene.unread(group, [topic])}
    truth.conclusion = f"Restart {holder} (take a thread dump before); the others get their partitions then."
    truth.proof = "the assignment has partitions pending revocation for that member since the others joined"
    truth.named = [f"\\b{group}\\b", f"\\b{holder}\\b"]
    truth.cause = ["revo|give up|gives up|give back|release|hold"]
    truth.first_step = ["restart|thread dump|stop (it|the member)|jstack"]
    truth.never_say("session (time-?out|expired)", "its heartbeats go on")
    truth.never_say("no members", "it has members")
    return truth


@kind("dead_instance_transaction", "an instance dies in a transaction, its successor uses another transactional id")
def dead_instance_transaction(scene: Scene) -> Truth:
    """So nothing fences the dead one, and readers of committed records stop at its first record."""
    scene.surround(6)
    count = scene.random.randint(1, 3)
    topic = scene.topic(count)
    application = scene.names.group()
    old, new = (f"{application}-{scene.names.suffix()}" for _ in range(2))
    config = {"transaction.timeout.ms": "900000"}
    rate, length = scene.random.uniform(8, 20), scene.random.randint(100, 300)
    first = scene.producer([topic], rate, count, name=f"{application}-a", transactional=old, transaction=length,
                           config=config)  # fmt: skip
    group = scene.names.group()
    protocol = scene.random.choice(["classic", "consumer"])
    reader = scene.consumer(f"{group}-0", group, [topic], protocol, config={"isolation.level": "read_committed"})
    scene.wait(18, 24)
    scene.stop(first, "vanish")
    since = now()
    scene.wait(2, 6)
    scene.producer([topic], rate, count, name=f"{application}-b", transactional=new, transaction=length, config=config)
    scene.wait(38, 45)
    truth = incident("dead_instance_transaction", [group], [topic])
    truth.planted = (
        f"An instance of {application} died in a transaction (transactional.id {old}, transaction.timeout.ms 15 "
        f"minutes); its successor uses {new}. {group} reads committed records and stands still."
    )
    truth.members = [old, new, reader]
    truth.since = since
    truth.scale = {"stuck": scene.unread(group, [topic])}
    truth.scale_margin = 0.25
    truth.conclusion = f"Abort the transaction of {old} (kafka-transactions abort); use the same id after a restart."
    truth.proof = f"{old} is Ongoing since then, {new} commits; last stable offset of {topic}"
    truth.named = [f"\\b{old}\\b|\\b{re.escape(topic)}\\b", "transaction", f"\\b{group}\\b"]
    truth.cause = [
        f"\\b{old}\\b",
        "dead|died|gone|crash|left behind|abandon|never ended|no longer",
        "open|ongoing|hang",
    ]
    truth.first_step = ["kafka-transactions|abort"]
    truth.never_say("(slow|stuck) consumer|too slow", "the consumer is well")
    truth.details = {"old": old, "new": new, "reader": group}
    return truth


@kind(
    "deleted_before_read", "a group is slower than the retention of its topic: records are deleted before it reads them"
)
def deleted_before_read(scene: Scene) -> Truth:
    """The group jumps to the new start of the log again and again."""
    scene.surround(6)
    count = scene.random.randint(1, 3)
    retention = scene.random.randint(5, 9) * 1000
    topic = scene.topic(count, retention_ms=str(retention), segment_ms="1500", file_delete_delay_ms="1000")
    rate = scene.random.uniform(25, 50)
    scene.producer([topic], rate, count)
    group = scene.names.group()
    pause = 1000 / (rate * scene.random.uniform(0.2, 0.4))
    config = {"max.poll.records": "5"}
    member = scene.consumer(f"{group}-0", group, [topic], pause=pause, config=config)
    scene.wait(55, 65)
    lost, times = scene.jumped(group)
    truth = incident("deleted_before_read", [group], [topic])
    truth.planted = (
        f"{topic} keeps records {retention} ms; {group} reads a third of what is written, and jumped {len(times)} "
        f"times over {lost} records that were deleted before."
    )
    truth.members = [member]
    truth.since, truth.since_margin_ms = times[0] if times else None, 6000
    truth.scale, truth.scale_margin = {"lost": lost}, 0.2
    truth.conclusion = "Raise retention.ms of the topic now, then make the group faster: more members, less work."
    truth.proof = "commits jump to the start of the log, which is beyond the offset committed before, again and again"
    truth.named = [f"\\b{group}\\b", f"\\b{re.escape(topic)}\\b"]
    truth.cause = ["delet|retention", "before"]
    truth.first_step = ["retention\\.ms|retention"]
    truth.never_say("purge|DeleteRecords by an operator", "nobody deleted records but the retention")
    truth.details = {"jumps": len(times), "retention_ms": retention}
    return truth


@kind("transactional_ids_explode", "an application makes a transactional id for each piece of work")
def transactional_ids_explode(scene: Scene) -> Truth:
    """Each stays in __transaction_state for transactional.id.expiration.ms, a week."""
    scene.surround(5)
    topic = scene.topic(2)
    group = scene.names.group()
    scene.consumer(f"{group}-0", group, [topic], config={"isolation.level": "read_committed"})
    scene.wait(8, 12)
    application = scene.names.group()
    since = now()
    used = 0
    deadline = time.monotonic() + scene.random.uniform(45, 60)
    while time.monotonic() < deadline:
        started = now()
        identity = f"{application}-{scene.names.suffix()}"
        name = scene.producer([topic], 2e6, 2, name=identity, transactional=identity, limit=2)
        scene.crew.wait_for("written", [name], since=started)
        used += 1
    truth = incident("transactional_ids_explode", [], [topic])
    truth.planted = f"{application} made {used} transactional ids, one for each transaction."
    truth.members = [application]
    truth.since = since
    truth.scale, truth.scale_margin = {"ids": used}, 0.05
    truth.conclusion = "Use as many transactional ids as there are instances, the same after each restart."
    truth.proof = "that many keys in __transaction_state with one transaction each, under one prefix"
    truth.named = ["transactional", application]
    truth.cause = ["ids", "random|new|each|once|never used again|one transaction"]
    truth.first_step = ["same|stable|fixed|reuse|transactional\\.id"]
    truth.never_say("hang|dead instance", "all transactions were committed")
    return truth
