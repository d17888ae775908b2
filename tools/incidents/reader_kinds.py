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


@kind(
    "quiet_readers",
    "topics whose readers commit no offsets: a share group, a group that never commits, one whose offsets expired",
    {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "2000"},
    healthy=True,
)
def quiet_readers(scene: Scene) -> Truth:
    """Each has read its topic, or reads it."""
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
