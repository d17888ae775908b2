"""More trouble: members, producers and logs."""

from __future__ import annotations

import re
import time

from tools.incidents.kinds import kind
from tools.incidents.scene import Scene, now
from tools.incidents.truth import Truth, incident


@kind("poll_too_slow", "a round of work takes longer than max.poll.interval.ms: a member leaves before it can commit")
def poll_too_slow(scene: Scene) -> Truth:
    """It reads the same records again and again, because of the timeout."""
    scene.surround(6)
    count = scene.random.randint(1, 3)
    topic, group = scene.topic(count), scene.names.group()
    scene.producer([topic], scene.random.uniform(15, 30), count)
    interval = scene.random.randint(3000, 4500)
    records = scene.random.randint(30, 50)
    protocol = scene.random.choice(["classic", "classic", "consumer"])
    config = {"max.poll.interval.ms": str(interval), "max.poll.records": str(records)}
    if protocol == "classic":
        config["session.timeout.ms"] = "3000"
    member = scene.consumer(f"{group}-0", group, [topic], protocol, config=config)
    scene.wait(16, 22)
    since = now()
    scene.change(member, pause=interval * scene.random.uniform(1.4, 1.8) / records)
    scene.wait(45, 52)
    truth = incident("poll_too_slow", [group], [topic])
    truth.planted = (
        f"Since then the application of {group} ({protocol}) takes longer for {records} records than "
        f"max.poll.interval.ms, {interval}: it is put out of its group before it commits, and reads them again."
    )
    truth.members = [member]
    truth.since, truth.since_margin_ms = since, interval + 4000
    truth.scale, truth.scale_margin = {"stuck": scene.unread(group, [topic])}, 0.25
    truth.conclusion = "Lower max.poll.records or raise max.poll.interval.ms; find out why the work became slow."
    truth.proof = "the member leaves an interval after it joined, its offsets do not move, the same client joins again"
    truth.named = [f"\\b{group}\\b"]
    truth.cause = ["max\\.poll\\.interval|poll(s|ed)? (too )?(late|slowly|rarely)|too long between polls|slow"]
    truth.first_step = ["max\\.poll"]
    truth.never_say("poison|same record\\b", "no record is bad: the work is slow")
    truth.details = {"read_twice": scene.read_twice(group), "interval": interval, "protocol": protocol}
    return truth


@kind("instance_id_twice", "two processes are configured with one group.instance.id and fence each other")
def instance_id_twice(scene: Scene) -> Truth:
    """Each is restarted by its supervisor, and then fences the other."""
    scene.surround(6)
    topic, group = scene.topic(3), scene.names.group()
    scene.producer([topic], scene.random.uniform(8, 20), 3)
    instance = f"{group}-pod-0"
    config = {"group.instance.id": instance}
    restart = scene.random.randint(1000, 2500)
    first = scene.consumer(f"{group}-a", group, [topic], config=config, restart=restart)
    scene.wait(18, 24)
    since = now()
    second = scene.consumer(f"{group}-b", group, [topic], config=config, restart=restart)
    scene.wait(42, 50)
    crashes = len(scene.crew.seen("crashed", [first, second]))
    truth = incident("instance_id_twice", [group], [topic])
    truth.planted = f"{first} and {second} have the same group.instance.id, {instance}: fenced {crashes} times in turn."
    truth.members = [first, second, instance]
    truth.since = since
    truth.scale, truth.scale_margin = {"fenced": crashes}, 0.3
    truth.conclusion = "Give each process a group.instance.id of its own."
    truth.proof = "one instance id with new member ids again and again, client ids in turn"
    truth.named = [f"\\b{group}\\b", f"\\b{instance}\\b"]
    truth.cause = ["instance", "two|each other|twice|same|more than one|fence"]
    truth.first_step = ["group\\.instance\\.id|instance id"]
    truth.never_say("(raise|increase|longer)[^.]*(session\\.timeout|max\\.poll)", "no member timed out")
    return truth


@kind("producers_fence", "two processes use one transactional id and fence each other")
def producers_fence(scene: Scene) -> Truth:
    """Each is restarted, raises the epoch, and aborts the transaction of the other."""
    scene.surround(6)
    topic, group = scene.topic(2), scene.names.group()
    scene.consumer(f"{group}-0", group, [topic], config={"isolation.level": "read_committed"})
    identity = f"{scene.names.group()}-tx"
    restart = scene.random.randint(800, 2000)
    length, rate = scene.random.randint(100, 300), scene.random.uniform(5, 12)
    names = [f"{identity}-{letter}" for letter in "ab"]
    start = {"transactional": identity, "transaction": length, "restart": restart}
    scene.producer([topic], rate, 2, name=names[0], **start)
    scene.wait(16, 22)
    since = now()
    scene.producer([topic], rate, 2, name=names[1], **start)
    scene.wait(42, 50)
    crashes = len(scene.crew.seen("crashed", names))
    truth = incident("producers_fence", [group], [topic])
    truth.planted = f"Two processes use the transactional.id {identity}: they fenced each other {crashes} times."
    truth.members = [identity]
    truth.since = since
    truth.scale, truth.scale_margin = {"fenced": crashes}, 0.3
    truth.conclusion = "Give each process a transactional.id of its own."
    truth.proof = "its epoch rises again and again; transactions end by PrepareEpochFence or PrepareAbort"
    truth.named = [f"\\b{identity}\\b"]
    truth.cause = ["fence|epoch", "two|each other|same|more than one|another"]
    truth.first_step = ["transactional\\.id|transactional id|of its own"]
    truth.never_say(r"\bhang", "no transaction stays open")
    return truth


@kind("groups_explode", "a script reads with a new group each time and never deletes one")
def groups_explode(scene: Scene) -> Truth:
    """The same as with `kafka-console-consumer`, but with commits that are kept for a week."""
    scene.surround(5)
    topic = scene.topic(1)
    scene.producer([topic], scene.random.uniform(3, 8))
    prefix = scene.names.group()
    scene.wait(10, 15)
    since = now()
    made = 0
    deadline = time.monotonic() + scene.random.uniform(48, 56)
    while time.monotonic() < deadline:
        group = f"{prefix}-{scene.names.suffix()}"
        member = scene.consumer(f"{prefix}-probe", group, [topic], config={"auto.offset.reset": "latest"}, commit=100)
        scene.crew.wait_for("assigned", [member], since)
        scene.wait(0.4, 0.7)
        scene.stop(member)
        made += 1
    truth = incident("groups_explode", [], [topic])
    truth.planted = f"A script that reads {topic} made {made} groups with the prefix {prefix}, one for each run."
    truth.members = [prefix]
    truth.since, truth.since_margin_ms = since, 6000
    truth.scale, truth.scale_margin = {"groups": made}, 0.1
    truth.conclusion = "Let the script use one group, or none; delete those that are left."
    truth.proof = "that many groups with one prefix, each with one generation of one member"
    truth.named = [prefix, "groups"]
    truth.cause = ["new group|random|each (run|start|time)|one prefix|same prefix|one for each|throwaway|once"]
    truth.first_step = ["delete|one group|same group|group\\.id|without a group"]
    truth.never_say("endless|without end", "groups come and go as the script runs")
    return truth


@kind("too_slow", "a group reads less than is written: its backlog grows and grows")
def too_slow(scene: Scene) -> Truth:
    """Members work and commit regularly, but fall behind."""
    scene.surround(6)
    count = scene.random.randint(2, 4)
    topic, group = scene.topic(count), scene.names.group()
    rate = scene.random.uniform(25, 45)
    scene.producer([topic], rate, count)
    member = scene.consumer(f"{group}-0", group, [topic], config={"max.poll.records": "10"})
    scene.wait(16, 22)
    since = now()
    scene.change(member, pause=1000 / (rate * scene.random.uniform(0.25, 0.45)))
    scene.wait(48, 55)
    truth = incident("too_slow", [group], [topic])
    truth.planted = (
        f"Since then {group} reads a third of what is written to {topic}, at about {rate:.0f} records per second."
    )
    truth.members = [member]
    truth.since, truth.since_margin_ms = since, 8000
    truth.scale, truth.scale_margin = {"stuck": scene.unread(group, [topic])}, 0.15
    truth.conclusion = "Find out why the work became slow, or add members, up to one for each partition."
    truth.proof = "commits go on at a third of the rate at which the log grows"
    truth.named = [f"\\b{group}\\b", re.escape(topic)]
    truth.cause = ["slow|grow|faster|fall(s|ing)? behind|keep up|more .*written"]
    truth.first_step = ["member|instance|partition|process|faster|slow|lag"]
    truth.never_say("rebalanc", "there was no rebalance")
    return truth


@kind(
    "new_partitions_latest", "partitions are added to a topic, and a group that starts at the end skips what was first"
)
def new_partitions_latest(scene: Scene) -> Truth:
    """Consumers learn of new partitions when their metadata is old enough; until then records are written there."""
    scene.surround(6)
    before = scene.random.randint(1, 2)
    after = before + scene.random.randint(1, 3)
    topic, group = scene.topic(before), scene.names.group()
    config = {"auto.offset.reset": "latest", "metadata.max.age.ms": "12000"}
    member = scene.consumer(f"{group}-0", group, [topic], config=config)
    old = scene.producer([topic], scene.random.uniform(10, 25), before)
    scene.wait(18, 24)
    since = now()
    scene.crew.ask("grow", topic=topic, partitions=after)
    scene.wait(0.5, 1)
    scene.stop(old)
    scene.producer([topic], scene.random.uniform(20, 40), after)
    scene.wait(32, 38)
    ledger = scene.crew.ask("ledger", group=group)
    fresh = [f"{topic}-{number}" for number in range(before, after)]
    lost = sum(ledger[place]["first"] for place in fresh if place in ledger)
    truth = incident("new_partitions_latest", [group], [topic])
    truth.planted = (
        f"{topic} got {after - before} partitions more. {group}, auto.offset.reset=latest, learned of them later and "
        f"began at their ends: {lost} records are never read."
    )
    truth.partitions, truth.members = fresh, [member]
    truth.since, truth.since_margin_ms, truth.going_on = since, 15_000, False
    truth.scale = {"lost": lost}
    truth.conclusion = "Read the first records of the new partitions once; use earliest before partitions are added."
    truth.proof = "PartitionRecords of the new partitions; the first commits there are far from 0"
    truth.named = [f"\\b{group}\\b", re.escape(topic)]
    truth.cause = ["partitions", "added|new|more", "latest|end|reset|skip|never read"]
    truth.first_step = ["auto\\.offset\\.reset|earliest|to-offset 0|reset-offsets"]
    truth.never_say("deleted before|retention", "no record was deleted")
    return truth


@kind("purged_before_read", "somebody deletes the records of a topic that a group has not read yet")
def purged_before_read(scene: Scene) -> Truth:
    """With `kafka-delete-records`, up to the ends of the logs."""
    scene.surround(6)
    count = scene.random.randint(1, 3)
    topic, group = scene.topic(count), scene.names.group()
    scene.producer([topic], scene.random.uniform(20, 40), count)
    member = scene.consumer(f"{group}-0", group, [topic])
    scene.wait(14, 18)
    scene.stop(member)
    scene.wait(10, 16)
    since = now()
    scene.crew.ask("purge", offsets=dict(scene.crew.offsets("ends", [topic])))
    scene.wait(4, 7)
    returned = now()
    scene.consumer(member, group, [topic])
    scene.wait(18, 22)
    lost, _ = scene.jumped(group)
    truth = incident("purged_before_read", [group], [topic])
    truth.planted = f"While {group} was stopped somebody deleted the records of {topic}: it never read {lost} of them."
    truth.members = [member]
    truth.since, truth.since_also, truth.going_on = since, [returned], False
    truth.scale = {"lost": lost}
    truth.conclusion = "The records are gone: get them from their origin. Ask who runs kafka-delete-records."
    truth.proof = "the logs begin in the middle of a segment, beyond the offsets committed before"
    truth.named = [f"\\b{group}\\b", re.escape(topic)]
    truth.cause = ["delet|removed|purged", "before|unread|not read|never"]
    truth.first_step = ["record|source|origin|delete-records|retention"]
    truth.never_say("too slow|slower than|more slowly", "the group was stopped, and retention did nothing")
    return truth


@kind("hung_member", "the application of a group's only member hangs; its heartbeats go on")
def hung_member(scene: Scene) -> Truth:
    """No member leaves, and there is no rebalance; only the commits stop."""
    scene.surround(6)
    count = scene.random.randint(1, 4)
    topic, group = scene.topic(count), scene.names.group()
    scene.producer([topic], scene.random.uniform(10, 25), count)
    protocol = scene.random.choice(["classic", "consumer"])
    member = scene.consumer(f"{group}-0", group, [topic], protocol, config={"max.poll.interval.ms": "900000"})
    scene.wait(18, 24)
    scene.change(member, stalled=True)
    since = now()
    scene.wait(42, 50)
    truth = incident("hung_member", [group], [topic])
    truth.planted = f"The application of {member} ({protocol}) hangs; it stays in its group and commits nothing."
    truth.members = [member]
    truth.since = since
    truth.scale = {"stuck": scene.unread(group, [topic])}
    truth.conclusion = f"Take a thread dump of {member} and restart it."
    truth.proof = "the member is in the group still, its last commit is from then, the log grows"
    truth.named = [f"\\b{group}\\b", re.escape(topic)]
    truth.cause = ["stop|hang|stuck|no commit|does not commit|still|stall"]
    truth.first_step = ["restart|thread dump|jstack|process|application|describe"]
    truth.never_say("rebalanc\\w+ without|endless", "there was no rebalance")
    return truth


@kind(
    "topic_recreated",
    "a topic is deleted and is there again: a broker created it for a client, or somebody did",
    {"auto.create.topics.enable": "true"},
)
def topic_recreated(scene: Scene) -> Truth:
    """Its groups continue with the new topic, which has none of the old records."""
    scene.surround(5)
    by_client = scene.random.random() < 0.5
    count = scene.random.randint(2, 4)
    topic, group = scene.topic(count), scene.names.group()
    rate = scene.random.uniform(8, 16)
    producer = scene.producer([topic], rate, 0 if by_client else count)
    member = scene.consumer(f"{group}-0", group, [topic])
    scene.wait(20, 26)
    if not by_client:
        for name in (member, producer):
            scene.stop(name)
        scene.wait(1, 2)
    since = now()
    scene.crew.ask("delete", topic=topic)
    if not by_client:
        scene.wait(2, 5)
        scene.create(topic, count, retention_ms="7200000")
        scene.producer([topic], rate, count)
        scene.consumer(f"{group}-1", group, [topic])
    scene.wait(26, 32)
    truth = incident("topic_recreated", [group], [topic])
    truth.planted = f"{topic} with {count} partitions was deleted" + (
        " while its clients went on: a broker created it again with one partition, because a client asked for it."
        if by_client
        else " and created again with as many partitions and a retention.ms of its own, while its clients were stopped."
    )
    truth.since, truth.going_on = since, False
    truth.conclusion = "Find out who deleted it, and whether the records that were not consumed have to be restored."
    truth.proof = "RemoveTopicRecord and TopicRecord of one name; commits with another topic id"
    truth.named = [re.escape(topic), "recreated|created again"]
    truth.cause = ["client", "auto\\.create\\.topics"] if by_client else ["somebody|program|administrator|purpose"]
    truth.first_step = ["auto\\.create\\.topics|created? (it|the topic)|who (re)?created"]
    truth.never_say("expired", "the offsets did not expire")
    truth.details = {"by_client": by_client, "partitions": count}
    return truth
