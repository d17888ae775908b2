"""Bring a real broker into trouble, or into health that looks like trouble, and record it with what a report has to
find.

This starts one Kafka broker on loopback with healthy applications around the case, and plays the kind in one to two
minutes. Then `DIR/KIND-SEED` has the data directory, an archive of it, `truth.json`, and `live.json`: the report on the
running broker just before it was stopped. Names, sizes and times depend on the seed. Counts come from the clients of
the run, so no two runs are equal.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tools.broker import Broker, BrokerError, free_ports
from tools.incidents.crew import Crew, CrewError
from tools.incidents.every_kind import EVERY_KIND
from tools.incidents.kinds import Kind
from tools.incidents.recording import DATA, keep_directory, keep_live_report, keep_log
from tools.incidents.scene import SETTINGS, Scene
from tools.incidents.truth import Truth
from tools.java_compiler import CompileError

RELEASES = ("4.3.1", "4.4.0")
"""The releases for which Maven has everything that a broker and its clients need."""


def play(kind: Kind, seed: int, release: str, out: Path) -> Path:
    """Play a kind and record it; returns the folder. Raises BrokerError, CrewError, CompileError."""
    random = Random(int.from_bytes(hashlib.sha256(f"{kind.name} {seed}".encode()).digest()[:8]))
    folder = out / f"{kind.name}-{seed}"
    with tempfile.TemporaryDirectory(prefix="incidents-") as scratch:
        [port] = free_ports(1)
        broker = Broker(Path(scratch) / "broker", settings={**SETTINGS, **kind.settings}, port=port, release=release)
        broker.start()
        try:
            with Crew(broker.bootstrap, release, Path(scratch)) as crew:
                scene = Scene(broker, crew, random)
                truth = kind.play(scene)
                _complete(truth, kind, seed, release)
                scene.finish(truth)
                folder.mkdir(parents=True, exist_ok=True)
                keep_live_report(broker.bootstrap, folder, truth.report_arguments)
                if "stuck" in truth.scale:
                    # Producers continued while the report was made.
                    truth.scale["stuck"] = scene.unread(truth.groups[0], truth.topics)
                # Stop the broker first: clients that end before it would leave their groups.
                broker.stop()
        except CrewError:
            shutil.copy(Path(scratch) / "crew.log", out / f"{kind.name}-{seed}.crew.log")
            raise
        finally:
            broker.kill()
        size = keep_directory(broker.data, folder)
        if truth.details.get("keeps_log"):
            keep_log(broker.log, folder)
    truth.save(folder)
    print(f"{folder}: {truth.planted} ({size // 1000} kB)", flush=True)
    return folder


def _complete(truth: Truth, kind: Kind, seed: int, release: str) -> None:
    truth.seed, truth.kafka = seed, release
    truth.settings = {**SETTINGS, **kind.settings}


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.incidents", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="a kind of --list; several, or all")
    parser.add_argument("--seed", type=int, default=1, help="seed for names, sizes and times (default 1)")
    parser.add_argument("--out", type=Path, default=Path("build/incidents"), help="folder of the recordings")
    parser.add_argument("--kafka", choices=RELEASES, help="the release of the broker (default: drawn from the seed)")
    parser.add_argument("--without-data", action="store_true", help=f"keep the archive only, not the folder {DATA}")
    parser.add_argument("--list", action="store_true", help="list the kinds and end")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 1 if a kind could not be played, 2 if a kind is unknown."""
    asked = _arguments(arguments)
    if asked.list or not asked.kinds:
        for each in EVERY_KIND.values():
            print(f"{each.name:27} {'healthy ' if each.healthy else 'incident'}  {each.about}")
        return 0
    names = list(EVERY_KIND) if asked.kinds == ["all"] else asked.kinds
    if unknown := [name for name in names if name not in EVERY_KIND]:
        print(f"Unknown kind: {', '.join(unknown)}. Choose one of --list.", file=sys.stderr)
        return 2
    asked.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names:
        release = asked.kafka or RELEASES[asked.seed % 2 ^ (list(EVERY_KIND).index(name) % 2)]
        try:
            folder = play(EVERY_KIND[name], asked.seed, release, asked.out)
        except (BrokerError, CrewError, CompileError) as error:
            print(f"{name} --seed {asked.seed}: {error}", file=sys.stderr)
            failed = 1
            continue
        if asked.without_data:
            shutil.rmtree(folder / DATA)
    return failed


if __name__ == "__main__":
    sys.exit(main())
