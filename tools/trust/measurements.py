"""The measurements of docs/trust.md: their names, the commands that make them, and what they prove.

A measurement has its figures in docs/trust.json, or takes them from a file that another tool writes (`taken_from`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Measurement:
    """One section of the page.

    `name` is its key in docs/trust.json; `command` makes the figures. `taken_from` names another file of docs/ with the
    figures, which tools/trust/taken.py reads; such a measurement has no entry in docs/trust.json.
    """

    name: str
    title: str
    command: str
    proves: str
    proves_not: str
    taken_from: str = ""


MEASUREMENTS: Final = (
    Measurement(
        name="histories",
        title="Random histories",
        command="make judge SEEDS=1-1000",
        proves="The tables say what Kafka's own coordinator classes answer about the same log: whole, up to a moment, "
        "in any order, with rows twice, as a cleaner leaves it, and with records lost.",
        proves_not="That the random clients do everything that real clients do.",
    ),
    Measurement(
        name="reach",
        title="Branches of Kafka's classes",
        command="make judge-reach SEEDS=1-2000",
        proves="In how much of Kafka's code the random histories could show a difference.",
        proves_not="That this code was compared in every state. A branch counts once one history takes it.",
        taken_from="judge-reach.json",
    ),
    Measurement(
        name="mutants",
        title="Mutants of our rules",
        command="make mutants SEED=26",
        proves=(
            "If a rule of a coordinator were slightly wrong, histories of Kafka or our tests would notice, in this "
            "share of cases."
        ),
        proves_not="That the rules are right where Kafka's classes were not asked, or that a missing rule is noticed.",
    ),
    Measurement(
        name="releases",
        title="Releases of Kafka, PySpark and Python",
        command="make support",
        proves="What is supported was run with that release: specs, messages, tables, brokers.",
        proves_not="That releases between these behave the same, or that a cell without a run works.",
        taken_from="support.json",
    ),
    Measurement(
        name="live-reads",
        title="Reads of live brokers",
        command="KAFKA_RECORDS_DAY_SECONDS=1500 python -m pytest -s -m matrix tests/broker/test_live_state.py",
        proves="Repeated runs with a state give the tables of runs without one, while brokers are killed and come "
        "back.",
        proves_not="Anything about hundreds of brokers, or networks other than loopback.",
    ),
    Measurement(
        name="faults",
        title="Live reads through faults",
        command="make faults SECONDS=3600 SEED=1",
        proves=(
            "Whatever happens on the way (answers cut, late, doubled or throttled, lost connections, moving leaders, "
            "a recreated topic), a read returns the log that was served, says what it lacks, or ends with an error "
            "that says what happened."
        ),
        proves_not="Anything about bytes that change on the way: only batches have checksums. The faults come from a "
        "proxy on the same machine, without TLS.",
    ),
    Measurement(
        name="kills",
        title="Killed snapshots",
        command="make snapshot-kills",
        proves="A snapshot, or a state of tables, whose runs were killed at random points equals one of whole runs.",
        proves_not="That it survives the loss of power: the processes die, and the machine does not.",
    ),
    Measurement(
        name="lost-writes",
        title="Lost writes",
        command="make lost-writes",
        proves=(
            "After every step of a run, a disk that forgets what was not synced has an older whole state, or a "
            "message, and no wrong row."
        ),
        proves_not="That a file system keeps the promises of POSIX; and a disk that lies about a sync is not tried.",
    ),
    Measurement(
        name="fuzz",
        title="Fuzzing",
        command="make fuzz-guided fuzz-jvm SECONDS=3600",
        proves=(
            "Inputs that a fuzzer chose by the branches they take cause only this project's own errors. All codecs, "
            "columns and the schema walker read messages alike, and both readers of segments agree."
        ),
        proves_not="That no other input fails.",
    ),
)
"""The measurements in the order of the page. For a new one, add an entry here, and run `python -m tools.trust
--record`."""
