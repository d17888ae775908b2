"""Healthy clusters that may look as if something were wrong."""

from __future__ import annotations

import time

from tools.incidents.kinds import kind
from tools.incidents.scene import Scene, now
from tools.incidents.truth import Truth, healthy


@kind("jobs", "jobs that start, read what there is, commit and leave, every few seconds", healthy=True)
def jobs(scene: Scene) -> Truth:
    """Each run is a new member, and its group is empty between runs."""
    scene.surround(5)
    topics = [scene.topic(2), scene.topic(1)]
    scene.producer(topics, scene.random.uniform(5, 12))
    groups = [scene.names.group() for _ in topics]
    runs = scene.random.randint(6, 8)
    for run in range(runs):
        for group, topic in zip(groups, topics, strict=True):
            scene.consumer(f"{group}-run-{run}", group, [topic])
        scene.wait(3, 5)
        for group in groups:
            scene.stop(f"{group}-run-{run}")
        scene.wait(2, 4)
    truth = healthy("jobs", groups, topics)
    truth.planted = f"{' and '.join(groups)} are jobs: {runs} times they start, read to the end, commit and leave."
    truth.proof = "each run ends by LeaveGroup with everything committed; the next goes on from there"
    truth.never_say("rebalanc", "members come and go as planned")
    return truth


@kind("rolling_restart", "the members of groups are restarted one after the other, twice", healthy=True)
def rolling_restart(scene: Scene) -> Truth:
    """Groups of both protocols are restarted one member at a time."""
    scene.surround(5)
    groups, topics = [], []
    lives = {}
    for protocol in ("classic", "consumer"):
        group, topic = scene.names.group(), scene.topic(4)
        groups.append(group)
        topics.append(topic)
        scene.producer([topic], scene.random.uniform(5, 15), 4)
        for number in range(3):
            name = scene.consumer(f"{group}-{number}", group, [topic], protocol)
            lives[name] = (group, topic, protocol)
    scene.wait(14, 18)
    for _ in range(2):
        for name, (group, topic, protocol) in lives.items():
            scene.stop(name)
            scene.wait(0.8, 2)
            scene.consumer(name, group, [topic], protocol)
            scene.wait(0.3, 1)
        scene.wait(3, 6)
    truth = healthy("rolling_restart", groups, topics)
    truth.planted = f"The three members of each of {', '.join(groups)} were restarted one after the other, twice."
    truth.proof = "members leave, come back with the same client ids; everything is read and committed afterwards"
    return truth


@kind("static_members", "static members vanish and are back within their session timeout", healthy=True)
def static_members(scene: Scene) -> Truth:
    """With group.instance.id, a restart causes no rebalance."""
    scene.surround(5)
    groups, topics = [], []
    lives = {}
    for protocol in ("classic", "consumer"):
        group, topic = scene.names.group(), scene.topic(3)
        groups.append(group)
        topics.append(topic)
        scene.producer([topic], scene.random.uniform(5, 15), 3)
        for number in range(3):
            config = {"group.instance.id": f"{group}-pod-{number}"}
            name = scene.consumer(f"{group}-{number}", group, [topic], protocol, config=config)
            lives[name] = (group, topic, protocol, config)
    scene.wait(14, 18)
    for _ in range(2):
        for name, (group, topic, protocol, config) in lives.items():
            scene.stop(name, "vanish")
            scene.wait(0.8, 2)
            scene.consumer(name, group, [topic], protocol, config=config)
            scene.wait(0.5, 1.5)
        scene.wait(3, 6)
    truth = healthy("static_members", groups, topics)
    truth.planted = f"Static members of {', '.join(groups)} were restarted within the session timeout, twice."
    truth.proof = "the same group.instance.ids with new member ids, without a rebalance"
    return truth


@kind("conversion", "a group goes from the classic to the consumer protocol member by member", healthy=True)
def conversion(scene: Scene) -> Truth:
    """KIP-848's online migration; for some seeds, also back."""
    scene.surround(5)
    group, topic = scene.names.group(), scene.topic(4)
    scene.producer([topic], scene.random.uniform(8, 20), 4)
    members = [scene.consumer(f"{group}-{number}", group, [topic]) for number in range(3)]
    scene.wait(16, 20)
    back = scene.random.random() < 0.4
    for protocol in ("consumer", "classic") if back else ("consumer",):
        for name in members:
            scene.stop(name)
            scene.wait(0.8, 2)
            scene.consumer(name, group, [topic], protocol)
            scene.wait(2, 3)
        scene.wait(8, 12)
    truth = healthy("conversion", [group], [topic])
    truth.planted = f"{group} was converted to the consumer protocol member by member" + (
        ", and back." if back else "."
    )
    truth.proof = "the group's records change from GroupMetadata to ConsumerGroup*; offsets go on"
    return truth


@kind("scaling", "an application is scaled up and down: each step is a rebalance", healthy=True)
def scaling(scene: Scene) -> Truth:
    """From one member to five and back to two."""
    scene.surround(5)
    groups, topics = [], []
    for protocol in ("classic", "consumer"):
        group, topic = scene.names.group(), scene.topic(6)
        groups.append(group)
        topics.append(topic)
        scene.producer([topic], scene.random.uniform(10, 20), 6)
        scene.consumer(f"{group}-0", group, [topic], protocol)
    scene.wait(12, 16)
    top = scene.random.randint(4, 6)
    for number in range(1, top):
        for group, topic, protocol in zip(groups, topics, ("classic", "consumer"), strict=True):
            scene.consumer(f"{group}-{number}", group, [topic], protocol)
        scene.wait(2, 4)
    scene.wait(5, 8)
    for number in range(top - 1, 1, -1):
        for group in groups:
            scene.stop(f"{group}-{number}")
        scene.wait(2, 4)
    scene.wait(6, 8)
    truth = healthy("scaling", groups, topics)
    truth.planted = f"{' and '.join(groups)} were scaled from 1 to {top} members and back to 2."
    truth.proof = "rebalances end, everything is read and committed"
    return truth


@kind("sparse_topics", "topics with a record every few seconds: their groups commit as rarely", healthy=True)
def sparse_topics(scene: Scene) -> Truth:
    """One of the topics stays empty."""
    scene.surround(5)
    topics = [scene.topic(1), scene.topic(2), scene.topic(1)]
    groups = [scene.names.group() for _ in topics]
    for topic, period in zip(topics[:2], (scene.random.uniform(5, 9), scene.random.uniform(10, 20)), strict=True):
        scene.producer([topic], 1 / period)
    for group, topic in zip(groups, topics, strict=True):
        scene.consumer(f"{group}-0", group, [topic], scene.random.choice(["classic", "consumer"]))
    scene.wait(60, 70)
    truth = healthy("sparse_topics", groups, topics)
    truth.planted = f"{', '.join(topics[:2])} get a record every few seconds, {topics[2]} none."
    truth.proof = "the committed offsets are the ends of the logs"
    return truth


@kind("short_transactions", "exactly-once applications with short transactions, one of which is open now", healthy=True)
def short_transactions(scene: Scene) -> Truth:
    """Two applications in a chain, and a group that reads committed records from them."""
    scene.surround(3)
    groups, topics = [], []
    source = scene.topic(2)
    scene.producer([source], scene.random.uniform(10, 20), 2)
    topics.append(source)
    for _ in range(2):
        group, to = scene.names.group(), scene.topic(1)
        scene.crew.ask(
            "copy", name=f"{group}-0", group=group, topics=[topics[-1]], to=to, transactional=f"{group}-0",
            transaction=scene.random.randint(30, 300), pause=scene.random.randint(0, 300),
        )  # fmt: skip
        groups.append(group)
        topics.append(to)
    group = scene.names.group()
    groups.append(group)
    scene.consumer(f"{group}-0", group, [topics[-1]], config={"isolation.level": "read_committed"})
    scene.wait(50, 60)
    truth = healthy("short_transactions", groups, topics)
    truth.planted = (
        "Two exactly-once applications in a chain, transactions of 30 to 300 ms; one may be open at the end."
    )
    truth.proof = "all transactions but the last complete within 300 ms"
    truth.never_say(r"\bhang|\bstuck", "transactions are short")
    return truth


@kind(
    "nightly_batch",
    "a batch finds a backlog each time, reads it and leaves; in between the backlog grows",
    healthy=True,
)
def nightly_batch(scene: Scene) -> Truth:
    """A night lasts fifteen seconds here; the recording ends during the day, with the usual backlog."""
    scene.surround(5)
    count = scene.random.randint(2, 3)
    topic, group = scene.topic(count), scene.names.group()
    scene.producer([topic], scene.random.uniform(20, 40), count)
    nights = scene.random.randint(4, 5)
    for night in range(nights):
        scene.wait(8, 9)
        scene.consumer(f"{group}-night-{night}", group, [topic], pause=2)
        deadline = time.monotonic() + 30
        while scene.unread(group, [topic]) > 20 and time.monotonic() < deadline:
            time.sleep(0.3)
        scene.wait(1, 2)
        scene.stop(f"{group}-night-{night}")
    scene.wait(4, 5)
    truth = healthy("nightly_batch", [group], [topic])
    truth.planted = f"{group} ran {nights} times, each time from a backlog to the end, and left."
    truth.proof = "each run ends with everything committed; what is unread now is less than before each run"
    return truth


@kind("new_group", "a new group reads an old topic from the beginning: its backlog is large and shrinks", healthy=True)
def new_group(scene: Scene) -> Truth:
    """It reads some thousand records, faster than new ones are written."""
    scene.surround(5)
    count = scene.random.randint(2, 4)
    topic, group = scene.topic(count), scene.names.group()
    backlog = scene.random.randint(6000, 9000)
    scene.fill(topic, backlog, count)
    scene.producer([topic], scene.random.uniform(5, 15), count)
    scene.wait(25, 30)
    started = now()
    pause = 1000 / (backlog / scene.random.uniform(40, 60))
    scene.consumer(f"{group}-0", group, [topic], scene.random.choice(["classic", "consumer"]), pause=pause)
    scene.wait(25, 30)
    truth = healthy("new_group", [group], [topic])
    truth.planted = f"{group} is new and reads {topic} from the beginning; its backlog of {backlog} shrinks."
    truth.proof = "commits go up faster than the log grows"
    truth.details = {"started": started, "unread": scene.unread(group, [topic])}
    return truth


@kind("retired_topic", "a topic is deleted on purpose, after its group was stopped and deleted", healthy=True)
def retired_topic(scene: Scene) -> Truth:
    """The tombstones in __consumer_offsets are not a loss."""
    scene.surround(5)
    count = scene.random.randint(1, 3)
    topic, group = scene.topic(count), scene.names.group()
    producer = scene.producer([topic], scene.random.uniform(5, 15), count)
    members = [scene.consumer(f"{group}-{number}", group, [topic]) for number in range(2)]
    scene.wait(22, 28)
    scene.stop(producer)
    scene.wait(2, 4)
    for name in members:
        scene.stop(name)
    scene.wait(2, 4)
    scene.crew.ask("delete-group", group=group)
    scene.wait(1, 3)
    scene.crew.ask("delete", topic=topic)
    scene.wait(20, 25)
    truth = healthy("retired_topic", [group], [topic])
    truth.planted = f"{group} was stopped with everything read and deleted, then its topic {topic} was deleted."
    truth.proof = "tombstones by DeleteGroups after LeaveGroup; RemoveTopicRecord afterwards"
    truth.details = {"deleted": [topic]}
    return truth


@kind("broker_restart", "the broker is restarted, all clients go on where they were", healthy=True)
def broker_restart(scene: Scene) -> Truth:
    """A short stop for everyone."""
    scene.surround(9)
    scene.wait(22, 28)
    scene.broker.stop()
    scene.broker.start()
    scene.wait(30, 36)
    truth = healthy("broker_restart", scene.company.groups)
    truth.planted = "The broker was restarted; everything goes on."
    truth.proof = "commits go on from where they were"
    return truth


@kind("short_retention", "a topic keeps records for seconds, and its groups have read them long before", healthy=True)
def short_retention(scene: Scene) -> Truth:
    """The start of the log moves all the time, but stays below the committed offsets."""
    scene.surround(5)
    count = scene.random.randint(1, 3)
    retention = scene.random.randint(4, 8) * 1000
    topic = scene.topic(count, retention_ms=str(retention), segment_ms="1500", file_delete_delay_ms="1000")
    scene.producer([topic], scene.random.uniform(20, 40), count)
    groups = [scene.names.group() for _ in range(2)]
    for group, protocol in zip(groups, ("classic", "consumer"), strict=True):
        scene.consumer(f"{group}-0", group, [topic], protocol)
    scene.wait(55, 60)
    lost = sum(scene.jumped(group)[0] for group in groups)
    truth = healthy("short_retention", groups, [topic])
    truth.planted = f"{topic} keeps records for {retention} ms; its groups have read them by then ({lost} lost)."
    truth.proof = "commits are at the end of the log, far beyond its start"
    return truth


@kind(
    "more_partitions",
    "partitions are added to a topic; its group starts at the earliest and loses nothing",
    healthy=True,
)
def more_partitions(scene: Scene) -> Truth:
    """This causes one more rebalance."""
    scene.surround(5)
    topic, group = scene.topic(2), scene.names.group()
    scene.producer([topic], scene.random.uniform(10, 20))
    protocol = scene.random.choice(["classic", "consumer"])
    for number in range(2):
        scene.consumer(f"{group}-{number}", group, [topic], protocol, config={"metadata.max.age.ms": "8000"})
    scene.wait(18, 24)
    scene.crew.ask("grow", topic=topic, partitions=scene.random.randint(4, 6))
    scene.producer([topic], scene.random.uniform(10, 20))
    scene.wait(32, 38)
    truth = healthy("more_partitions", [group], [topic])
    truth.planted = f"{topic} got more partitions; {group} reads them from their first record on."
    truth.proof = "the first commits of the new partitions cover all records from 0 on"
    return truth


@kind("always_scaling", "an application is scaled up and down again and again, and reads everything", healthy=True)
def always_scaling(scene: Scene) -> Truth:
    """The group scales between one and three members every second or two: as many rebalances as in trouble."""
    scene.surround(4)
    group, topic = scene.names.group(), scene.topic(6)
    protocol = scene.random.choice(["classic", "consumer"])
    scene.producer([topic], scene.random.uniform(10, 20), 6)
    scene.consumer(f"{group}-0", group, [topic], protocol)
    scene.wait(6, 8)
    steps = 0
    for number in range(scene.random.randint(9, 10)):
        for more in (1, 2):
            scene.consumer(f"{group}-{number}-{more}", group, [topic], protocol)
            scene.wait(1.2, 1.8)
        for more in (2, 1):
            scene.stop(f"{group}-{number}-{more}")
            scene.wait(1.2, 1.8)
        steps += 4
    scene.wait(3, 4)
    truth = healthy("always_scaling", [group], [topic])
    truth.planted = f"{group} was scaled between 1 and 3 members in {steps} steps."
    truth.proof = "rebalances are as frequent from the beginning on, everything is read and committed"
    return truth
