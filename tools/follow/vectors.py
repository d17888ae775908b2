"""Vectors of a release: its own message classes write messages of new versions, and read those of all other versions.

The classes of the release read every line of `messages.jsonl.gz` and `negative.jsonl.gz`. A line of `negative.jsonl.gz`
keeps its verdicts: the first one is in the line itself, and `later` lists those that differed from the verdict of the
previous release, the oldest first. A valid message that has changed gets the field names of the release. If one of its
unknown tags became a field that cannot hold the content of the tag, the line moves to `negative.jsonl.gz`. New lines
have the `release` that wrote them, and are the same in each run. Lines of versions or messages that the release dropped
move to `given_up.jsonl.gz`, with that release as `given_up`, and move back if a later release has them again.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import groupby, pairwise
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from kafka_records_runtime.schema import covers
from tools.broker import java
from tools.follow.refusals import FollowError
from tools.java_compiler import compile_java
from tools.random_messages import random_message

Line = dict[str, Any]

_SOURCE: Final = Path(__file__).resolve().parents[1] / "JudgeMessages.java"
_EACH: Final = 8
"""The number of messages that are written for each version."""

_VERDICT: Final = ("ok", "json", "left", "tags", "reencode_hex", "reencode_error", "error", "detail")
_READ: Final = ("json", "left", "reencode_hex", "reencode_error")
_DIFFERS: Final = {
    "json": "other fields",
    "left": "another number of bytes left",
    "reencode_hex": "other bytes when written again",
    "reencode_error": "other bytes when written again",
    "tags": "other unknown tags",
}
_GIVEN_UP: Final = "given_up.jsonl.gz"
_BECAME_A_FIELD: Final = "became a field"


class Reason(NamedTuple):
    """The reason why some `lines` about `messages` are `refused`, `read` or read `otherwise`: the error of the release
    that refuses them, with N for numbers, or the difference."""

    verdict: Literal["refused", "read", "otherwise"]
    why: str
    messages: tuple[str, ...]
    lines: int


class Differences(NamedTuple):
    """The lines of `negative.jsonl.gz` for which the verdict of a release differs from that of the previous release.

    `were_whole` is the number of those that came from `messages.jsonl.gz`. `given_up` counts lines of versions that the
    release no longer has.
    """

    reasons: tuple[Reason, ...] = ()
    were_whole: int = 0
    given_up: int = 0

    def total(self, verdict: str) -> int:
        return sum(reason.lines for reason in self.reasons if reason.verdict == verdict)


class MessageClasses:
    """The message classes in a folder of jars or classes of one release."""

    def __init__(self, *places: Path, packages: Sequence[str] = ()) -> None:
        self._places = [each / "*" if any(each.glob("*.jar")) else each for each in places]
        self._packages = packages

    def asked(self, lines: Sequence[Mapping[str, Any]]) -> list[Line]:
        """The answer of the classes to each line, in the form that JudgeMessages.java describes."""
        with tempfile.TemporaryDirectory() as scratch:
            compile_java("the program that asks Kafka's message classes", [_SOURCE], self._places, Path(scratch))
            classpath = ":".join(map(str, (scratch, *self._places)))
            command = [java(), "-XX:TieredStopAtLevel=1", "-cp", classpath, "JudgeMessages", *self._packages]
            asked = "".join(json.dumps(line) + "\n" for line in lines)
            done = subprocess.run(command, input=asked, capture_output=True, encoding="utf-8", check=False)
        if done.returncode:
            raise FollowError(f"Kafka's message classes cannot be asked:\n{done.stderr.strip()}")
        return [json.loads(line) for line in done.stdout.split("\n") if line]


def revise(
    folder: Path,
    classes: MessageClasses,
    touched: Mapping[str, frozenset[int]],
    release: str,
    newer_names: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Bring the vectors in `folder` to `release`; `touched` are the messages that changed, with their new versions, and
    `newer_names` has the new names of messages that the release renamed.

    Returns the differences that no change of the release explains; empty if all is well.
    """
    messages, negative = folder / "messages.jsonl.gz", folder / "negative.jsonl.gz"
    parted = folder / _GIVEN_UP
    lines = [*read(messages), *read(negative), *(read(parted) if parted.exists() else ())]
    lines = [line for line in lines if "how" in line or line.get("release") != release]
    lines = [{**line, "message": newer_names.get(line["message"], line["message"])} for line in lines]
    gone = [{"given_up": release, **line} for line in lines if not _is_ours(line)]
    ours = [{name: value for name, value in line.items() if name != "given_up"} for line in lines if _is_ours(line)]
    known, damaged = ([line for line in ours if ("how" in line) is is_damaged] for is_damaged in (False, True))
    fresh = list(_fresh(touched))
    asked = [{name: line[name] for name in ("message", "version", "hex")} for line in (*known, *damaged)]
    answers = classes.asked([*asked, *fresh])
    odd: list[str] = []
    again = [_read_again(*pair, touched, release, odd) for pair in zip(known, answers, strict=False)]
    judged = zip(damaged, answers[len(known) :], strict=False)
    verdicts = [_judged_again(*pair, touched, release, odd) for pair in judged]
    written = [_written(*pair, release) for pair in zip(fresh, answers[len(asked) :], strict=True)]
    write(messages, [*(line for line in again if "how" not in line), *written])
    write(negative, [*verdicts, *(line for line in again if "how" in line)])
    if gone or parted.exists():
        write(parted, gone)
    return odd


def unwritten(folder: Path, release: str, messages: Mapping[str, Iterable[int]]) -> dict[str, frozenset[int]]:
    """By message, the versions for which no release other than this one has written a vector."""
    lines = (line for line in read(folder / "messages.jsonl.gz") if line.get("release") != release)
    written = {(line["message"], line["version"]) for line in lines}
    found = {
        name: frozenset(version for version in versions if (name, version) not in written)
        for name, versions in messages.items()
    }
    return {name: versions for name, versions in found.items() if versions}


def differences(folder: Path, release: str) -> Differences:
    """The differences of `release`, according to `later` in lines of `negative.jsonl.gz`, and the number of lines that
    it dropped."""
    lines, parted = read(folder / "negative.jsonl.gz"), folder / _GIVEN_UP
    given_up = sum(line["given_up"] == release for line in read(parted)) if parted.exists() else 0
    found: Counter[tuple[Literal["refused", "read", "otherwise"], str, str]] = Counter()
    were_whole = 0
    for line in lines:
        verdicts = [line, *line.get("later", ())]
        for number, (before, after) in enumerate(pairwise(verdicts)):
            if after["release"] != release:
                continue
            if not after["ok"]:
                found["refused", _refusal(after), line["message"]] += 1
            elif not before["ok"]:
                found["read", _refusal(before), line["message"]] += 1
            else:
                found["otherwise", _what_differs(before, after), line["message"]] += 1
            were_whole += number == 0 and line["how"].endswith(_BECAME_A_FIELD)
    reasons = []
    for (verdict, why), counted in groupby(sorted(found.items()), key=lambda item: item[0][:2]):
        lines_of = {message: count for (_, _, message), count in counted}
        reasons.append(Reason(verdict, why, tuple(lines_of), sum(lines_of.values())))
    return Differences(tuple(reasons), were_whole, given_up)


def _refusal(verdict: Line) -> str:
    """The message of an exception of Kafka's, without its numbers."""
    said = f"{verdict['error'].rpartition('.')[2]}: {verdict.get('detail', '')}".rstrip(": ")
    return re.sub(r"-?\b[0-9]+", "N", said)


def _what_differs(before: Line, after: Line) -> str:
    differ = [name for name in _READ if before.get(name) != after.get(name)]
    if _sorted_tags(before) != _sorted_tags(after):
        differ.append("tags")
    return ", ".join(dict.fromkeys(_DIFFERS[name] for name in differ))


def read(path: Path) -> list[Line]:
    """The lines of a packed file of vectors."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(path: Path, lines: Sequence[Line]) -> None:
    """Write the lines, unless the file already has them. The bytes depend only on the lines."""
    if path.exists() and read(path) == list(lines):
        return
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def unknown_tags(schema: Any, struct: str, value: Any, path: Sequence[Any] = ()) -> Iterator[Line]:
    """The unknown tagged fields in a message and in its structs: each with its path of names and numbers, its tag and
    its payload."""
    for tag, payload in getattr(value, "unknown_tagged_fields", ()):
        yield {"path": list(path), "tag": tag, "hex": payload.hex()}
    for field in schema.struct(struct).fields:
        member = getattr(value, field.name)
        if not field.is_struct or member is None:
            continue
        if field.is_array:
            for index, item in enumerate(member):
                yield from unknown_tags(schema, field.base, item, (*path, field.json_name, index))
        else:
            yield from unknown_tags(schema, field.base, member, (*path, field.json_name))


def _class(name: str) -> Any:
    """A generated class. It is imported late, because this run has just written it."""
    registry = import_module("kafka_records.registry")
    return registry.message_class(name) if name in registry.MESSAGES else None


def _is_ours(line: Line) -> bool:
    cls = _class(line["message"])
    return cls is not None and line["version"] in cls.VERSIONS


def _fresh(touched: Mapping[str, frozenset[int]]) -> Iterator[Line]:
    for name, versions in sorted(touched.items()):
        cls = _class(name)
        for version in sorted(versions) if cls is not None else ():
            random = Random(f"{name} {version}")
            for number in range(_EACH):
                message = random_message(cls, version, random, plain=number % 2 == 0)
                line = {"message": name, "version": version, "json": message.to_json(version, lossy=True)}
                tags = list(unknown_tags(cls.CODEC.schema, cls.CODEC.schema.root.name, message))
                yield line | ({"tags": tags} if tags else {})


def _written(line: Line, answer: Line, release: str) -> Line:
    if answer.get("unknown"):
        raise FollowError(f"no class of Kafka {release} is called {line['message']}")
    if "hex" not in answer:
        raise FollowError(f"Kafka {release} does not write {json.dumps(line)}: {json.dumps(answer)}")
    found = {"message": line["message"], "module": answer["module"], "version": line["version"]}
    found |= {"hex": answer["hex"], "json": answer["json"]}
    return found | ({"tags": line["tags"]} if "tags" in line else {}) | {"release": release}


def _read_again(line: Line, answer: Line, touched: Mapping[str, frozenset[int]], release: str, odd: list[str]) -> Line:
    """The line as the release reads it. If a tag became a field, it has `how`, and belongs into `negative.jsonl.gz`."""
    whole = answer.get("ok") and not answer["left"] and not answer.keys() & {"reencode_hex", "reencode_error"}
    # A line that a release wrote, and not we, has no `records` if all of them are empty.
    records = answer.get("records", ()) if "records" in line or any(answer.get("records", ())) else None
    now = {**line, "json": answer.get("json"), "tags": answer.get("tags"), "records": records}
    now = {name: value for name, value in now.items() if name in line or value}
    if line["message"] in touched:
        if whole:
            return now
        tag = _tag_of_a_field(line)
        if tag is not None and not answer.get("unknown"):
            how = f"whole, but tag {tag} {_BECAME_A_FIELD}"
            first = {name: line[name] for name in ("message", "module", "version")}
            first |= {"how": how, "hex": line["hex"], "ok": True, "json": line["json"], "left": 0, "tags": line["tags"]}
            return _judged_again(first, answer, touched, release, odd)
    elif answer.get("unknown") or (whole and in_any_order(now) == in_any_order(line)):
        return line
    odd.append(_otherwise(line, answer))
    return line


def _tag_of_a_field(line: Line) -> int | None:
    """An unknown tag of the line that is a field of its struct now."""
    schema = _class(line["message"]).CODEC.schema
    for tag in line.get("tags", ()):
        struct = schema.root
        for name in (each for each in tag["path"] if isinstance(each, str)):
            field = next((each for each in struct.fields if each.json_name == name), None)
            if field is None:
                break
            struct = schema.struct(field.base)
        else:
            if any(each.tag == tag["tag"] and covers(each.tagged, line["version"]) for each in struct.fields):
                return int(tag["tag"])
    return None


def _judged_again(
    line: Line, answer: Line, touched: Mapping[str, frozenset[int]], release: str, odd: list[str]
) -> Line:
    before = _verdicts_before(line, release)[-1]
    is_otherwise = not answer.get("unknown") and _differ(before, answer)
    if is_otherwise and line["message"] not in touched and before["ok"] and answer["ok"]:
        odd.append(_otherwise(line, answer))
    return judged(line, answer, release)


def _verdicts_before(line: Line, release: str) -> list[Line]:
    return [line, *(verdict for verdict in line.get("later", ()) if verdict["release"] != release)]


def judged(line: Line, answer: Line, release: str) -> Line:
    """The line, with the verdict of the release in `later` if it differs from the previous verdict."""
    before, *later = _verdicts_before(line, release)
    if not answer.get("unknown") and _differ(later[-1] if later else before, answer):
        verdict = {name: answer[name] for name in _VERDICT if answer.get(name) not in (None, [])}
        later.append({"release": release, **verdict})
    first = {name: value for name, value in line.items() if name != "later"}
    return first | ({"later": later} if later else {})


def _differ(before: Line, answer: Line) -> bool:
    """Whether only one of the two is read, or the results differ. The text of an error does not count."""
    if not before["ok"] or not answer["ok"]:
        return bool(before["ok"] != answer["ok"])
    return any(before.get(name) != answer.get(name) for name in _READ) or _sorted_tags(before) != _sorted_tags(answer)


def _otherwise(line: Line, answer: Line) -> str:
    return f"{line['message']} version {line['version']}: {line['hex']}: {json.dumps(answer)}"


def in_any_order(line: Line) -> Line:
    """The line with its unknown tags as texts, sorted: so two lines that differ only in the order of tags are equal."""
    return {**line, "tags": _sorted_tags(line)}


def _sorted_tags(line: Line) -> list[str]:
    return sorted(map(json.dumps, line.get("tags") or ()))
