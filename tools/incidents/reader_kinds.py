"""Topics that no group reads, and topics whose readers leave few records."""

from __future__ import annotations

import re
import time

from tools.incidents.kinds import kind
from tools.incidents.scene import Scene, now
from tools.incidents.truth import Truth, healthy, incident


@kind("unread_topic", "a topic is written and no group reads it; in every second seed a client without a group does")
def unread_topic(scene: Scene) -> Truth:
    """A report has to name both causes: no record shows which it is."""
    scene.surround(5)
    count = scene.random.randint(1, 4)
    read, unread, group = scene.topic(count), scene.topic(count), scene.names.group()
    since = now()
    scene.producer([read], scene.random.uniform(5, 15), count)
    scene.producer([unread], scene.random.uniform(10, 30), count)
    scene.consumer(f"{group}-0", group, [read], scene.random.choice(["classic", "consumer"]))
    is_fetched = scene.random.random() < 0.5
    if is_fetched:
        scene.consumer(f"{unread}-tail", scene.names.group(), [unread], assign=True)
    scene.wait(66, 75)
    truth = incident("unread_topic", [group], [unread, read])
    truth.planted = f"{unread} is written and no group reads it." + (
        " A client that assigns itself its partitions does, and commits nothing." if is_fetched else ""
    )
    truth.since, truth.is_note = since, True
    truth.scale = {"records": sum(scene.crew.offsets("ends", [unread]).values())}
    truth.conclusion = "Ask the brokers whether clients fetch from it; if not, stop its producer or delete the topic."
    truth.proof = "no record of __consumer_offsets names it, while its log grows"
    truth.named = [f"\\b{re.escape(unread)}\\b", "no group"]
    truth.cause = ["(nothing|nobody) reads", "without a group"]
    truth.first_step = ["BytesOut"]
    truth.never_say(f"[Nn]o group[^.]*\\b{re.escape(read)}\\b", "a group reads that one")
    truth.details = {"is_fetched": is_fetched}
    return truth


@kind("never_commits", "a group has members and partitions with records, and never commits them, or one of them")
def never_commits(scene: Scene) -> Truth:
    """A group that never commits may be healthy, which no record shows; a group that leaves out a partition is not."""
    scene.surround(5)
    count = scene.random.randint(2, 5)
    topic, group = scene.topic(count), scene.names.group()
    protocol = scene.random.choice(["classic", "consumer"])
    scene.producer([topic], scene.random.uniform(15, 30), count)
    scene.wait(3, 6)
    is_whole = scene.random.random() < 0.5
    place = f"{topic}-{scene.random.randrange(count)}"
    how = {"commit": 10**9} if is_whole else {"left_out": place}
    members = [scene.consumer(f"{group}-{each}", group, [topic], protocol, **how) for each in range(2)]
    since = scene.crew.wait_for("assigned", members).at
    scene.wait(82, 95)
    truth = incident("never_commits", [group], [topic])
    truth.planted = (
        f"{group} reads {topic} and commits nothing." if is_whole else f"{group} paused {place} from its start on."
    )
    truth.partitions, truth.members = [] if is_whole else [place], members
    truth.since, truth.is_note = since, is_whole
    truth.scale = {"stuck": scene.unread(group, [topic])}
    truth.conclusion = "Look up how its application commits; a restart reads the records again, or skips them."
    truth.proof = "members have partitions with records, and no record of __consumer_offsets has an offset of them"
    truth.named = [f"\\b{group}\\b", "never commit", re.escape(topic)]
    # A group with two members commits when partitions move from one member to the other.
    truth.cause = ["does not commit|commits only when"] if is_whole else ["pause"]
    truth.first_step = ["commit", "restart"] if is_whole else ["pause"]
    truth.never_say("expired|too slow|more members", "nothing expired, and its members read all they are to read")
    truth.details = {"is_whole": is_whole, "protocol": protocol}
    return truth


@kind(
    "recreated_latest", "a topic is deleted and created again, and a group that starts at the end skips records of it"
)
def recreated_latest(scene: Scene) -> Truth:
    """Its members stay meanwhile, or are stopped; the producer writes to the new topic before they begin to read it."""
    scene.surround(4)
    count = scene.random.randint(1, 3)
    topic, group = scene.topic(count), scene.names.group()
    protocol = scene.random.choice(["classic", "consumer"])
    stays = scene.random.random() < 0.5
    latest = {"auto.offset.reset": "latest"}
    producer = scene.producer([topic], scene.random.uniform(30, 50), count)
    member = scene.consumer(f"{group}-0", group, [topic], protocol, config=latest)
    scene.wait(22, 28)
    scene.stop(producer)
    if not stays:
        scene.stop(member)
    scene.wait(1, 2)
    since = now()
    scene.crew.ask("delete", topic=topic)
    scene.wait(3, 6)
    scene.create(topic, count, retention_ms="7200000")
    scene.fill(topic, scene.random.randint(40, 90) * count, count)
    if not stays:
        scene.consumer(f"{group}-1", group, [topic], protocol, config=latest)
        scene.wait(3, 5)
    scene.producer([topic], scene.random.uniform(10, 20), count)
    scene.wait(26, 32)
    jumps = [each for place in scene.crew.ask("ledger", group=group).values() for each in place["jumps"]]
    skipped = sum(each["to"] for each in jumps if each["to"] < each["from"])
    truth = incident("recreated_latest", [group], [topic])
    truth.planted = (
        f"{topic} was deleted and created again while {group} {'went on' if stays else 'was stopped'}; it starts at "
        f"the end, and skipped {skipped} records of the new topic."
    )
    truth.since, truth.going_on = since, False
    truth.scale = {"possibly_skipped": skipped} if skipped else {}
    truth.conclusion = "Have the group read the start of the new topic, if its auto.offset.reset is latest."
    truth.proof = "its first commits of the new topic are after records that had been written before it was assigned"
    truth.named = [re.escape(topic), "recreated|created again", f"\\b{group}\\b"]
    truth.cause = ["auto\\.offset\\.reset", "somebody|program|administrator|purpose"] if skipped else ["somebody"]
    truth.first_step = ["to-earliest"] if skipped else ["who (re)?created"]
    truth.never_say("expired", "the offsets did not expire")
    truth.details = {"stays": stays, "protocol": protocol, "partitions": count, "jumps": jumps}
    return truth


@kind(
    "quiet_readers",
    "topics whose readers commit no offsets: a share group, a group that never commits, one whose offsets expired",
    {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "2000"},
    healthy=True,
)
def quiet_readers(scene: Scene) -> Truth:
    """Each of them has read its topic, or reads it now."""
    scene.surround(4)
    shared, silent, expired = topics = [scene.topic(scene.random.randint(1, 3)) for _ in range(3)]
    groups = [scene.names.group() for _ in topics]
    for topic in topics:
        scene.producer([topic], scene.random.uniform(5, 15))
    protocols = ["classic", "consumer"]
    earliest = {"share.auto.offset.reset": "earliest"}
    scene.crew.ask("configure", type="GROUP", resource=groups[0], config=earliest)
    scene.crew.ask("share", name=f"{groups[0]}-0", group=groups[0], topics=[shared])
    scene.consumer(f"{groups[1]}-0", groups[1], [silent], scene.random.choice(protocols), commit=10**9)
    member = scene.consumer(f"{groups[2]}-0", groups[2], [expired], scene.random.choice(protocols))
    scene.wait(12, 18)
    scene.stop(member)
    while scene.crew.ask("committed", group=groups[2]):
        time.sleep(0.2)
    scene.wait(5, 9)
    truth = healthy("quiet_readers", groups, topics)
    truth.planted = (
        f"A share group reads {shared}, {groups[1]} reads {silent} and never commits, {groups[2]} has read {expired} "
        "and left; its offsets expired."
    )
    truth.proof = "state of a share group, the subscription of a member, tombstones of offsets"
    truth.never_say("[Nn]o group (has|reads)", "each topic has, or had, a group that reads it")
    truth.report_arguments = ["--retention", "1m"]
    return truth
