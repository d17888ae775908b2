"""Trouble that somebody caused with a tool, that is over, or that affects only a part of a group."""

from __future__ import annotations

import re
import time

from tools.incidents.kinds import kind
from tools.incidents.scene import Scene, now
from tools.incidents.truth import Truth, incident


@kind("moved_ahead", "somebody resets the offsets of a stopped group to the ends of the logs: it skips records")
def moved_ahead(scene: Scene) -> Truth:
    """The records that were written while the group was stopped are never read."""
    scene.surround(5)
    count = scene.random.randint(1, 4)
    topic, group = scene.topic(count), scene.names.group()
    protocol = scene.random.choice(["classic", "consumer"])
    scene.producer([topic], scene.random.uniform(20, 40), count)
    members = [scene.consumer(f"{group}-{number}", group, [topic], protocol) for number in range(2)]
    scene.wait(16, 22)
    for name in members:
        scene.stop(name)
    scene.wait(14, 20)
    since = now()
    scene.crew.ask("alter-offsets", group=group, offsets=dict(scene.crew.offsets("ends", [topic])))
    scene.wait(1, 4)
    for name in members:
        scene.consumer(name, group, [topic], protocol)
    scene.wait(18, 24)
    lost, _ = scene.jumped(group)
    truth = incident("moved_ahead", [group], [topic])
    truth.planted = f"{group} was stopped, and its offsets were set to the ends of {topic}: it skipped {lost} records."
    truth.members, truth.since, truth.going_on = members, since, False
    truth.scale = {"lost": lost}
    truth.conclusion = "Read what was skipped with another group id, from the offsets before the reset on."
    truth.proof = "a commit at the end of the log while the group is empty, after which its members begin there"
    truth.named = [f"\\b{group}\\b", re.escape(topic)]
    truth.cause = ["tool|reset|somebody"]
    truth.first_step = ["another group id|--to-offset"]
    truth.never_say("expired|too slow|second time|read again", "somebody set the offsets ahead")
    return truth


@kind("loop_is_over", "members fail on a record again and again, until somebody sets the offset after it")
def loop_is_over(scene: Scene) -> Truth:
    """The group works again when the recording ends."""
    scene.surround(5)
    count = scene.random.randint(2, 4)
    topic, group = scene.topic(count), scene.names.group()
    rate = scene.random.uniform(8, 16)
    scene.producer([topic], rate, count)
    place = scene.random.randrange(count)
    offset = int(rate / count * scene.random.uniform(10, 14))
    poison = f"{topic}-{place}@{offset}"
    restart = scene.random.randint(700, 1500)
    protocol = scene.random.choice(["classic", "consumer"])
    members = [
        scene.consumer(f"{group}-{number}", group, [topic], protocol, poison=poison, restart=restart)
        for number in range(2)
    ]
    since = scene.crew.wait_for("crashed", members).at
    scene.wait(26, 34)
    for name in members:
        scene.stop(name)
    scene.wait(1, 2)
    scene.crew.ask("alter-offsets", group=group, offsets={f"{topic}-{place}": offset + 1})
    for name in members:
        scene.consumer(name, group, [topic], protocol)
    deadline = time.monotonic() + 20
    while scene.unread(group, [topic]) > rate * 3 and time.monotonic() < deadline:
        time.sleep(0.3)
    scene.wait(8, 12)
    truth = incident("loop_is_over", [group], [topic])
    truth.planted = f"The members of {group} threw on {poison} and were restarted, until its offset was set after it."
    truth.partitions, truth.members = [f"{topic}-{place}"], members
    truth.since, truth.going_on = since, False
    truth.conclusion = f"Nothing is urgent: find out what failed at {offset}, and whether that record is needed."
    truth.proof = "the offset stays while members join and leave, then a commit while the group is empty"
    truth.named = [f"\\b{group}\\b", re.escape(topic), "over"]
    truth.cause = [f"\\b{offset}\\b", "record"]
    truth.first_step = [f"\\b{offset}\\b"]
    truth.never_say("goes on|without end", "it is over")
    truth.details = {"offset": offset, "protocol": protocol}
    return truth


@kind("left_out_partition", "an application pauses one of its partitions and never resumes it")
def left_out_partition(scene: Scene) -> Truth:
    """The group continues with its other partitions."""
    scene.surround(5)
    count = scene.random.randint(4, 6)
    topic, group = scene.topic(count), scene.names.group()
    scene.producer([topic], scene.random.uniform(15, 30), count)
    protocol = scene.random.choice(["classic", "consumer"])
    members = [scene.consumer(f"{group}-{number}", group, [topic], protocol) for number in range(2)]
    place = f"{topic}-{scene.random.randrange(count)}"
    scene.wait(20, 26)
    for name in members:
        scene.change(name, left_out=place)
    since = now()
    scene.wait(42, 50)
    truth = incident("left_out_partition", [group], [topic])
    truth.planted = f"The application of {group} paused {place} and did not resume it."
    truth.partitions, truth.members = [place], members
    truth.since = since
    truth.scale = {"stuck": scene.unread(group, [topic])}
    truth.conclusion = f"Restart the member that has {place}, or have the application resume it."
    truth.proof = f"the offset of {place} stays, other partitions of the same member go on"
    truth.named = [f"\\b{group}\\b", re.escape(topic)]
    truth.cause = ["pause"]
    truth.first_step = ["restart", "record"]
    truth.never_say("more members|too slow|reads nothing|commits nothing;", "its member reads its other partitions")
    return truth
