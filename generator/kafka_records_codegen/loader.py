"""Loads a folder of spec files as a model, or reports everything that is wrong with them."""

from __future__ import annotations

import keyword
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafka_records_codegen.model.checks import check_message
from kafka_records_codegen.model.framings import check_framing, framing_of
from kafka_records_codegen.model.messages import Folder, Message, Model
from kafka_records_codegen.model.naming import (
    RESERVED_CONSTANTS,
    RESERVED_MODULES,
    RESERVED_TOP_FOLDERS,
    module_name,
    record_name,
    spark_names,
)
from kafka_records_codegen.model.note_checks import Notes, check_notes, resolved_notes
from kafka_records_codegen.model.resolve import SpecFile, record_pairs, resolve_module
from kafka_records_codegen.spec.attributes import NOT_STORED, read_message
from kafka_records_codegen.spec.notes import NOTES, NotesSpec, read_notes
from kafka_records_codegen.spec.violations import Position, SpecErrors, SpecText, Violation, in_order
from kafka_records_runtime.records.framing import METADATA
from kafka_records_runtime.text.casing import upper_snake_case

_LIKE_SPECS = frozenset({".json", ".json5", ".jsonc", ".yaml", ".yml"})
_NUMBERED = ("request", "response", "metadata", "coordinator-key", "coordinator-value")


def load(
    specs_dir: Path, *, older_dialect: bool = False, strict: bool = False, warnings: list[Violation] | None = None
) -> Model:
    """Read every `*.json` file in `specs_dir` and in the folders below it, one message each.

    Folders become subpackages; `_notes.json` contains the notes of its folder instead of a message. A retired API
    (`validVersions: none`) is checked but generates nothing. Raises `SpecErrors` with all violations of all files, or
    with a single one if there is nothing to read. Raises OSError for a file or folder that cannot be read.

    If Kafka's generator accepts something that is probably a mistake, a warning is appended to `warnings`. If `strict`
    is set, it is a violation.

    With `older_dialect`, constructs that Kafka's generator rejects today but that specs of releases before 4.0 contain
    are also accepted: a message without `flexibleVersions` has none (2.8), text after the end of the message is ignored
    (2.8), and requests may name the listener `zkBroker` (up to 3.9).
    """
    return load_with_specs(specs_dir, older_dialect=older_dialect, strict=strict, warnings=warnings).model


@dataclass(frozen=True)
class LoadedSpecs:
    """A model, and by name the specs from which it was built, with the places of all their parts. Retired specs are
    included."""

    model: Model
    files: Mapping[str, SpecFile]


def load_with_specs(
    specs_dir: Path, *, older_dialect: bool = False, strict: bool = False, warnings: list[Violation] | None = None
) -> LoadedSpecs:
    """Like `load`, for callers that report places in the files."""
    violations: list[Violation] = []
    doubts: list[Violation] = []
    folders: list[tuple[str, list[SpecFile], list[str], NotesSpec | None]] = []
    by_name: dict[str, SpecFile] = {}
    enums: dict[str, str] = {}
    for folder, paths, subfolders in _walk(specs_dir, violations):
        sources = [_read(path, violations, older_dialect) for path in paths]
        files = []
        complete = True
        for path, source in zip(paths, sources, strict=True):
            spec = None if source is None else read_message(source)
            if spec is None:
                complete = False
                continue
            complete = complete and spec.is_sound("type", "apiKey", "validVersions")
            files.append(SpecFile(folder, path.relative_to(specs_dir).as_posix(), spec, check_message(spec)))
        _check_names(files, by_name)
        _check_api_keys(files, complete)
        _check_modules(files, subfolders)
        beside = paths[0].with_name(NOTES)
        notes = None
        if os.path.lexists(beside):
            sources.append(_read(beside, violations, older_dialect))
            notes = None if sources[-1] is None else read_notes(sources[-1])
        check_framing([file.spec for file in files], notes, complete=complete)
        if notes is not None:
            at = beside.relative_to(specs_dir).as_posix()
            check_notes(notes, at, [file.spec for file in files], enums, complete=complete)
        violations += [violation for source in sources if source for violation in source.violations]
        doubts += [warning for source in sources if source for warning in source.warnings]
        folders.append((folder, files, subfolders, notes))
    if strict:
        violations += [replace(warning, is_warning=False) for warning in doubts]
        doubts = []
    if violations:
        raise SpecErrors(violations, doubts)
    if warnings is not None:
        warnings += in_order(doubts)
    resolved = [_resolve_folder(*folder) for folder in folders]
    return LoadedSpecs(Model(tuple(folder for folder in resolved if folder.messages)), by_name)


# ---- files and folders


def _walk(specs_dir: Path, violations: list[Violation]) -> list[tuple[str, list[Path], list[str]]]:
    """Every folder that contains specs: its path below `specs_dir`, its files, and its subfolders with specs."""
    if not specs_dir.is_dir():
        problem = "is not a folder" if specs_dir.exists() else "no such folder"
        raise SpecErrors([Violation(str(specs_dir), 0, 0, "", problem)])
    found = list(_walk_below(specs_dir, "", violations, {specs_dir.resolve()}))
    if not found:
        text = "contains no spec: there is no file that ends with .json in it or in a folder below it"
        raise SpecErrors([Violation(str(specs_dir), 0, 0, "", text)])
    return sorted(found)


def _walk_below(
    directory: Path, folder: str, violations: list[Violation], seen: set[Path]
) -> Iterator[tuple[str, list[Path], list[str]]]:
    entries = sorted(directory.iterdir())
    # Keep a dangling link, so that the error is reported when it is read.
    files = [entry for entry in entries if entry.suffix == ".json" and (entry.is_file() or not entry.exists())]
    files = [entry for entry in files if _has_readable_name(entry, violations)]
    notes = [entry for entry in files if entry.name == NOTES]
    files = [entry for entry in files if entry not in notes]
    if notes and not files:
        violations.append(Violation(str(notes[0]), 0, 0, "", "these notes have no spec next to them"))
    subfolders = []
    for entry in entries:
        if not entry.is_dir() or entry.resolve() in seen:
            continue
        below = list(_walk_below(entry, f"{folder}/{entry.name}".lstrip("/"), violations, {*seen, entry.resolve()}))
        if below:
            subfolders.append(entry.name)
            problem = _folder_problem(entry.name, is_top=not folder)
            if problem:
                violations.append(Violation(str(entry), 0, 0, "", problem))
        yield from below
    if files:
        yield folder, files, subfolders


def _has_readable_name(path: Path, violations: list[Violation]) -> bool:
    """Whether the name of a file is valid text. If not, a violation shows its bytes."""
    try:
        path.name.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        violations.append(Violation(shown, 0, 0, "", "the name of the file is not UTF-8"))
        return False
    return True


def unread(specs_dir: Path) -> list[Path]:
    """The files in and below `specs_dir` that look like specs but are not read, because their names do not end with
    .json."""
    found = (path for path in sorted(specs_dir.rglob("*")) if path.suffix != ".json")
    return [path for path in found if path.suffix.lower() in _LIKE_SPECS and path.is_file()]


def _folder_problem(name: str, *, is_top: bool) -> str | None:
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name) or name.startswith("__"):
        return (
            "a folder of specs becomes a Python package, so its name must be an identifier (letters, digits and "
            "underscores) and not a keyword"
        )
    if is_top and name in RESERVED_TOP_FOLDERS:
        listed = ", ".join(sorted(RESERVED_TOP_FOLDERS))
        return f"every generated package has its own modules {listed}; give the folder another name"
    if name in RESERVED_MODULES:
        return f"every package of records already contains the name {name}; give the folder another name"
    return None


def _read(path: Path, violations: list[Violation], older_dialect: bool) -> SpecText | None:
    data = path.read_bytes()
    try:
        return SpecText(str(path), data.decode("utf-8"), older_dialect)
    except UnicodeDecodeError as error:
        readable = data[: error.start].decode("utf-8")
        source = SpecText(str(path), readable + data[error.start :].decode("utf-8", "replace"))
        line = readable.count("\n") + 1
        column = len(readable) - (readable.rfind("\n") + 1) + 1
        source.report(
            Position(line, column),
            "",
            f"the file is not UTF-8: byte 0x{data[error.start]:02x} at {error.start}",
        )
        violations += source.violations
        return None


# ---- rules across files


def _check_names(files: Iterable[SpecFile], by_name: dict[str, SpecFile]) -> None:
    for file in files:
        if file.spec.is_sound("name"):
            first = by_name.setdefault(file.spec.name, file)
            if first is not file:
                file.spec.report("name", f"there is already a message {file.spec.name} in {first.path}")


def _check_api_keys(files: Sequence[SpecFile], complete: bool) -> None:
    """Check that each folder has one message per numbered type and `apiKey`, and a value for every key.

    Missing messages are reported only if all files of the folder could be read (`complete`).
    """
    owners: dict[tuple[str, int], SpecFile] = {}
    for file in files:
        spec = file.spec
        if spec.api_key is None or spec.type not in _NUMBERED or not spec.is_sound("type"):
            continue
        first = owners.setdefault((spec.type, spec.api_key), file)
        if first is not file:
            spec.report(
                "apiKey", f"{spec.api_key} is already used by the {spec.type} {first.spec.name} in {first.path}"
            )
    _check_stems(owners)
    if complete:
        _check_orphans(owners)


def _check_stems(owners: Mapping[tuple[str, int], SpecFile]) -> None:
    for (kind, api_key), file in owners.items():
        request = owners.get(("request", api_key))
        if kind == "response" and request is not None:
            wanted = request.spec.name.removesuffix("Request") + "Response"
            if request.spec.name.endswith("Request") and file.spec.name not in ("", wanted):
                file.spec.report("name", f"the response to {request.spec.name} must be called {wanted}")


def _check_orphans(owners: Mapping[tuple[str, int], SpecFile]) -> None:
    for (kind, api_key), file in owners.items():
        if not kind.startswith("coordinator"):
            continue
        other_kind = "coordinator-value" if kind == "coordinator-key" else "coordinator-key"
        other = owners.get((other_kind, api_key))
        if other is None:
            text = f"no {other_kind} with apiKey {api_key} in this folder; a record type has a key and a value"
            file.spec.report("apiKey", text)
        elif other.spec.is_retired and not file.spec.is_retired:
            text = f"{other.spec.name} of the same record type is retired (validVersions none), but this one is not"
            file.spec.report("validVersions", text)


def _check_modules(files: Iterable[SpecFile], subfolders: Sequence[str]) -> None:
    """Check that no two modules of a package, and no two constants of its schemas, have the same name."""
    packages = {name.lower(): name for name in subfolders}
    folders = frozenset(subfolders)
    modules: dict[str, list[SpecFile]] = {}
    constants: dict[str, SpecFile] = {}
    for module, group in _modules(files):
        spec = group[0].spec
        first = modules.setdefault(module.lower(), group)
        # Two messages with the same name have already been reported.
        if first is not group and spec.name != first[0].spec.name:
            other = first[0]
            text = f"{spec.name} would become the module {module}, as does {other.spec.name} in {other.path}"
            spec.report("name", text)
        if module.lower() in packages:
            text = f"{spec.name} would become the module {module}, next to the folder " f"{packages[module.lower()]}"
            spec.report("name", text)
        if module in RESERVED_MODULES or (not group[0].folder and module in RESERVED_TOP_FOLDERS):
            spec.report(
                "name",
                f"{spec.name} would become the module {module}, a name that every generated package uses",
            )
        for file in group:
            constant = upper_snake_case(file.spec.name)
            if constant in RESERVED_CONSTANTS:
                text = f"{file.spec.name} would become the constant {constant}, a name that generated modules use"
                file.spec.report("name", f"{text} themselves")
            for hidden in sorted(folders.intersection(_exported(file))):
                file.spec.report(
                    "name", f"{file.spec.name} would become the module {hidden}, which the folder {hidden} would hide"
                )
            other = constants.setdefault(constant, file)
            if other.spec.name != file.spec.name and first is group:
                text = f"{file.spec.name} would become the constant {constant}, as does {other.spec.name}"
                file.spec.report("name", f"{text} in {other.path}")
    _check_spark_functions(modules)


def _check_spark_functions(modules: Mapping[str, Sequence[SpecFile]]) -> None:
    """Check that no module hides a function, because the package of a folder's Spark modules exports both."""
    for file in (file for group in modules.values() for file in group):
        for name in _exported(file):
            if name in modules:
                other = modules[name][0]
                text = (
                    f"{file.spec.name} would export {name}, which the module {name} of {other.spec.name} in "
                    f"{other.path}"
                )
                file.spec.report("name", f"{text} would hide")


def _exported(file: SpecFile) -> tuple[str, ...]:
    """The names that a folder's packages export for a message: its constant and, if topics contain it, its Spark
    functions."""
    names = spark_names(file.spec.name)
    return names[:1] if file.spec.type in NOT_STORED else names


def _modules(files: Iterable[SpecFile]) -> Iterator[tuple[str, list[SpecFile]]]:
    """The modules of a folder, each with its specs. The key and the value of a record share one."""
    groups: defaultdict[tuple[str, int | str], list[SpecFile]] = defaultdict(list)
    for file in files:
        spec = file.spec
        if spec.is_retired or not spec.is_sound("name", "type", "apiKey", "validVersions"):
            continue
        if spec.type.startswith("coordinator") and spec.api_key is not None:
            groups["record", spec.api_key].append(file)
        else:
            groups["message", spec.name].append(file)
    for (kind, _), group in groups.items():
        group.sort(key=lambda file: file.spec.type != "coordinator-key")
        yield module_name(record_name(group[0].spec.name) if kind == "record" else group[0].spec.name), group


# ---- the model


def _resolve_folder(
    folder: str, files: Sequence[SpecFile], subfolders: Sequence[str], spec: NotesSpec | None
) -> Folder:
    messages: list[Message] = []
    pairs: list[tuple[Message | None, Message]] = []
    notes = Notes() if spec is None else resolved_notes(spec)
    framing = framing_of([file.spec for file in files], spec)
    for _, group in _modules(files):
        resolved = [_noted(message, notes) for message in resolve_module(group)]
        messages += resolved
        if len(resolved) == 2:
            key, value = resolved
            pairs.append((key, value))
        elif framing == METADATA and resolved[0].type == "metadata":
            pairs.append((None, resolved[0]))
    messages.sort(key=lambda message: message.source)
    records = record_pairs(pairs, subfolders)
    return Folder(folder, tuple(messages), records, notes.retired_types, notes.enums)


def _noted(message: Message, notes: Notes) -> Message:
    is_capped = message.name in notes.newer_as_highest
    return replace(message, notes=notes.version_notes.get(message.name, ()), newer_as_highest=is_capped)
