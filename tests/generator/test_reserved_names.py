"""Names that generated modules use themselves: no class, field, constant or module of a spec may take one.

The used names are extracted from the modules; `model.naming` and `python.names` list the reserved ones.
"""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.model.messages import Model
from kafka_records_codegen.model.naming import (
    RESERVED_CLASSES,
    RESERVED_CONSTANTS,
    RESERVED_MEMBERS,
    RESERVED_MODULES,
    RESERVED_TOP_FOLDERS,
    is_reserved_class,
    spark_names,
)
from kafka_records_codegen.model.units import units
from kafka_records_codegen.python.names import OWN_NAMES, local
from kafka_records_codegen.tree import write
from kafka_records_runtime.text.casing import upper_snake_case
from tests.generator.language_specs import write_language_specs
from tests.generator.spec_files import field as field_of
from tests.generator.spec_files import message, spec
from tests.generator.spec_files import write as specs_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ACME = ROOT / "tests" / "data" / "specs" / "acme"


@dataclass(frozen=True)
class Generated:
    """Models and what is generated for them, by path."""

    models: list[Model]
    files: dict[str, str]

    @property
    def codecs(self) -> Iterator[ast.Module]:
        """The modules with classes, and the private modules next to them."""
        paths = {
            f"{f.path}/{start}{unit.name}{end}.py".lstrip("/")
            for model in self.models
            for f in model.folders
            for unit in units(f)
            for start, end in (("", ""), ("_", "_readers"), ("_", "_writers"))
        }
        for path in paths & self.files.keys():
            yield ast.parse(self.files[path])


@pytest.fixture(scope="module")
def generated(our_files: dict[str, str], tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Generated:
    language = load(write_language_specs(data_dir, tmp_path_factory.mktemp("specs")))
    acme = load(ACME)
    ours = load(ROOT / "message_specs")
    framed = load(ROOT / "examples" / "own_specs" / "message_specs")  # a topic of it has metadata framing
    files = our_files | generate(acme, "acme") | generate(language, "language") | generate(framed, "framed")
    return Generated([ours, acme, language, framed], files)


@dataclass
class Names:
    """The names in codec modules that do not come from a spec."""

    module: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    """Names that a class or function reads but does not define: a member or variable would hide them."""
    loaded: set[str] = field(default_factory=set)
    """Python's builtins that are read anywhere: a class would hide them."""
    variables: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def names(generated: Generated) -> Names:
    structs = [struct for model in generated.models for message in model.messages for struct in message.structs]
    classes = {struct.python_name for struct in structs} | record_classes(generated)
    members = {member.python_name for struct in structs for member in struct.fields}
    variables = {local(member.schema) for struct in structs for member in struct.fields}
    found = Names()
    for module in generated.codecs:
        found.module |= bound(module.body) - classes
        found.loaded |= {name for name in loaded(module) if hasattr(builtins, name)}
        for node in module.body:
            if isinstance(node, ast.ClassDef):
                # The fields of a record do not come from a spec.
                is_record = "_KnownRecord" in {ast.unparse(base) for base in node.bases}
                own = {name for name in bound(node.body) if not is_record or name[0].isupper()}
                found.members |= own - members
                found.read |= read_by_class(node) - classes
            elif isinstance(node, ast.FunctionDef) and node.name.startswith(("_read_", "_write_")):
                own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)} | stored(node)
                found.variables |= own - variables
                found.read |= loaded(node) - own - classes
    return found


def record_classes(generated: Generated) -> set[str]:
    return {record.python_name for model in generated.models for f in model.folders for record in f.records}


def bound(body: list[ast.stmt]) -> set[str]:
    """What statements define, those below `if TYPE_CHECKING` included."""
    found = set()
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {each.asname or each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.If):
            found |= bound(node.body)
        else:
            found |= {name for name in stored(node) if not name.startswith("__")}
    return found


def stored(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def loaded(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def read_by_class(node: ast.ClassDef) -> set[str]:
    """What the body of a class reads, and the signatures in it. Bodies of methods do not see members."""
    found: set[str] = set()
    for each in node.body:
        if isinstance(each, ast.FunctionDef):
            found |= loaded(each.args) | {name for part in each.decorator_list for name in loaded(part)}
            found |= loaded(each.returns) if each.returns is not None else set()
        else:
            found |= loaded(each)
    return found


def test_classes(names: Names) -> None:
    used = {name for name in names.module | names.members | names.read | names.loaded if name[0].isupper()}
    assert {name for name in used if not is_reserved_class(name)} == set()
    unused = {name for name in RESERVED_CLASSES - used if not hasattr(builtins, name)}
    assert unused == set()


def test_fields(names: Names) -> None:
    used = {name for name in names.members | names.read if name[0].islower()}
    assert {"decode", "len", "unknown_tagged_fields"} <= used
    assert used - RESERVED_MEMBERS == set()


def test_variables_of_functions(names: Names) -> None:
    """The variable of a field has the field's name, unless functions already have a variable with that name."""
    assert names.variables - {"_"} == OWN_NAMES


def test_constants_of_schema_and_spark_modules(generated: Generated) -> None:
    """A message becomes a constant there. Which names they import depends on the fields."""
    ours = {upper_snake_case(message.name) for model in generated.models for message in model.messages}
    used = set()
    for path, text in generated.files.items():
        if path.startswith(("schemas/", "spark/")) and path.endswith(".py"):
            module = ast.parse(text)
            used |= bound(module.body) | loaded(module)
    found = {name for name in used - ours if name[0] != "_" and name.isupper()}
    assert {"RECORDS", "RETIRED_TYPES", "TYPE_CHECKING"} <= found <= RESERVED_CONSTANTS


def test_modules_of_folders(generated: Generated) -> None:
    """The package of a folder has names in addition to its modules."""
    messages = [message.name for model in generated.models for message in model.messages]
    ours = {name for message in messages for name in spark_names(message)}
    used: set[str] = set()
    for path, text in generated.files.items():
        if path.endswith("__init__.py"):
            for node in ast.parse(text).body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                    used |= set(ast.literal_eval(node.value))
    assert used - ours - record_classes(generated) == RESERVED_MODULES


def test_modules_at_the_top(our_files: dict[str, str]) -> None:
    """Every generated package has them next to the folders of specs."""
    ours = {folder.path.partition("/")[0] for folder in load(ROOT / "message_specs").folders}
    top = {path.partition("/")[0].removesuffix(".py") for path in our_files}
    assert top - ours - {"__init__", "py.typed"} == RESERVED_TOP_FOLDERS


def test_names_of_the_runtime_are_private(generated: Generated) -> None:
    """No name of a spec starts with an underscore, so those need no reservation."""
    for module in generated.codecs:
        for node in module.body:
            if isinstance(node, ast.ImportFrom) and node.module == "kafka_records_runtime.messages.codec":
                assert [each.asname for each in node.names] == [f"_{each.name}" for each in node.names]


def test_names_that_were_free_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Class attributes and imports, as names of structs."""
    monkeypatch.chdir(tmp_path)
    names = ("API_KEY", "CODEC", "RECORD_TYPE", "TYPE_CHECKING", "VERSIONS", "READERS_FOO", "Mapping")
    fields = [field_of(f"F{place}", name, fields=[field_of("X")]) for place, name in enumerate(names)]
    write(Path("odd_names"), generate(load(specs_of(Foo=spec(*fields))), "odd_names"))
    monkeypatch.syspath_prepend(str(tmp_path))
    foo = importlib.import_module("odd_names.registry").message_class("Foo")
    assert foo.decode(foo(f6=foo.CODEC.classes["Mapping"](7)).encode(2), 2).f6.x == 7
    found = [each.__name__ for each in foo.CODEC.classes.values()]
    assert sorted(found) == sorted(["Foo", "Mapping", *(f"{name}_" for name in names if name != "Mapping")])


def test_the_class_of_a_record_gives_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name clashes with a struct of its value, with names of the package, or with a subpackage."""
    monkeypatch.chdir(tmp_path)
    found = {"MyThing__Elsewhere": spec(field_of("X"), name="Elsewhere")}
    for number, name in enumerate(("Account", "Record", "MyThing", "Plain")):
        struct = [field_of("Held", "Account", fields=[field_of("X")])] if name == "Account" else []
        found[f"{name}Key"] = message(f"{name}Key", "coordinator-key", apiKey=number, fields=[field_of("Id")])
        found[f"{name}Value"] = message(f"{name}Value", "coordinator-value", apiKey=number, fields=struct)
    write(Path("odd_records"), generate(load(specs_of(**found)), "odd_records"))
    monkeypatch.syspath_prepend(str(tmp_path))
    odd = importlib.import_module("odd_records")
    classes = [kind.class_name for _, kind in sorted(odd.RECORD_TYPES.types.items())]
    assert classes == ["Account_", "Record_", "MyThing_", "Plain"]
    key, value = odd.Account_.KEY_CLASS(), odd.Account_.VALUE_CLASS()
    record = odd.decode_record(*odd.encode_record(key, value))
    assert record == odd.Account_(key, value, value_version=record.value_version)
    assert record.name == "Account"
    assert odd.record_from_json(record.to_json()) == record
