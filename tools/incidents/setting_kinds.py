"""Trouble caused by a setting: quotas of clients, configs of internal topics."""

from __future__ import annotations

import re

from kafka_records_tables.topics import OFFSETS
from tools.incidents.kinds import kind
from tools.incidents.scene import Scene, now
from tools.incidents.truth import Truth, incident


@kind("throttled", "a client quota that is far too low throttles a group: its backlog grows and grows")
def throttled(scene: Scene) -> Truth:
    """Its members work as fast as before, but brokers send them less. Another group reads the same topic."""
    scene.surround(4)
    count = scene.random.randint(2, 4)
    topic, group, other = scene.topic(count), scene.names.group(), scene.names.group()
    rate, size = scene.random.uniform(25, 40), scene.random.randint(150, 300)
    scene.producer([topic], rate, count, size=size)
    protocol = scene.random.choice(["classic", "consumer"])
    member = scene.consumer(f"{group}-0", group, [topic], protocol)
    scene.consumer(f"{other}-0", other, [topic], protocol)
    scene.wait(18, 24)
    since = now()
    quota = round(rate * size * scene.random.uniform(0.1, 0.2))
    scene.crew.ask("quota", client=member, name="consumer_byte_rate", value=quota)
    scene.wait(62, 70)
    truth = incident("throttled", [group], [topic])
    truth.planted = f"consumer_byte_rate={quota} was set for the client id {member}; {topic} grows faster than that."
    truth.members = [member]
    truth.since, truth.since_margin_ms = since, 10_000
    truth.scale, truth.scale_margin = {"stuck": scene.unread(group, [topic])}, 0.2
    truth.conclusion = "Raise or delete the quota; the group then catches up by itself."
    truth.proof = "ClientQuotaRecord in __cluster_metadata; the group reads as many bytes per second from then on"
    truth.named = [f"\\b{group}\\b", re.escape(topic)]
    truth.cause = ["quota", str(quota)]
    truth.first_step = ["quota"]
    truth.never_say("[Aa]dd members", "all clients with the id share the quota")
    truth.never_say("work of [^:]* became slow", "its work is as fast as before")
    truth.details = {"protocol": protocol, "record_size": size, "quota": quota}
    return truth


@kind(
    "offsets_topic_deletes", "__consumer_offsets is set to cleanup.policy=delete, and loses the commits of quiet groups"
)
def offsets_topic_deletes(scene: Scene) -> Truth:
    """For every second seed, the broker restarts after that, and quiet groups begin again."""
    scene.surround(4)
    topic, quiet = scene.topic(1), scene.names.group()
    scene.fill(topic, scene.random.randint(60, 120), 1)
    member = scene.consumer(f"{quiet}-0", quiet, [topic])
    scene.wait(8, 12)
    scene.stop(member)
    scene.wait(1, 2)
    since = now()
    config = {"cleanup.policy": "delete", "retention.ms": "15000", "segment.ms": "8000"}
    scene.crew.ask("configure", type="TOPIC", resource=OFFSETS, config=config)
    scene.wait(36, 42)
    restarts = scene.random.random() < 0.5
    if restarts:
        scene.broker.stop()
        scene.broker.start()
        scene.consumer(member, quiet, [topic])
        scene.wait(12, 16)
    truth = incident("offsets_topic_deletes", [], [OFFSETS])
    truth.planted = f"{OFFSETS} was altered to cleanup.policy=delete with retention.ms=15000" + (
        f", and the broker was restarted: {quiet} lost its offsets and read again." if restarts else "."
    )
    truth.since = since
    truth.conclusion = "Set cleanup.policy=compact; let no broker restart before the offsets of quiet groups are saved."
    truth.proof = "ConfigRecords of __consumer_offsets in __cluster_metadata; its logs begin above 0"
    truth.named = [OFFSETS]
    truth.cause = ["cleanup\\.policy", "delete"]
    truth.first_step = ["cleanup\\.policy=compact"]
    truth.never_say("files are missing|file is missing|files disappeared", "the broker deleted them as configured")
    truth.never_say("expired", "no offset expired")
    truth.details = {"restarts": restarts, "quiet": quiet}
    return truth
