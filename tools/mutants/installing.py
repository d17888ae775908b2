"""Installs a mutant in a forked child, whose process has already imported the unchanged modules."""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from tools.mutants.drawing import Mutant

_OURS: Final = ("kafka_records_tables", "tools.judge", "tests")
"""The packages that may refer to objects of a changed module."""


def install(mutant: Mutant) -> None:
    """Make all code of this process use the mutant.

    Changed functions get their new code, so existing references to them also run it. If anything else in the module has
    changed, all modules that may refer to it are removed from the list of modules, and imported again when they are
    needed.
    """
    changed = compile(mutant.source(), str(mutant.file), "exec", dont_inherit=True)
    original = compile(mutant.file.read_text("utf-8"), str(mutant.file), "exec", dont_inherit=True)
    if _outside_functions(changed) != _outside_functions(original) or not _replace(mutant.module, original, changed):
        _import_again(mutant, changed)
    for cached in caches():
        cached.cache_clear()


@functools.cache
def caches() -> list[Any]:
    """The caches of functions, which may contain results of a module from before the change. Call this before the fork:
    a child that scans all objects copies their memory."""
    found = [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]
    return [each for each in found if str(each.__module__).startswith(_OURS)]


def functions(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """The functions and methods of a module by qualified name. Nested functions are a part of the outer ones."""
    for inner in code.co_consts:
        if inspect.iscode(inner):
            if inner.co_flags & inspect.CO_NEWLOCALS:
                yield inner.co_qualname, inner
            else:
                yield from functions(inner)


def _outside_functions(code: CodeType) -> list[Any]:
    """The code that runs when the module is imported, without line numbers."""
    inner = [_outside_functions(each) for each in code.co_consts if inspect.iscode(each) and not _is_function(each)]
    # 1 and True are equal, but different constants.
    plain = [(type(each), each) for each in code.co_consts if not inspect.iscode(each)]
    return [code.co_code, code.co_names, plain, inner]


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_NEWLOCALS)


def _replace(module: str, original: CodeType, changed: CodeType) -> bool:
    """Give functions their new code; False if that cannot be done."""
    before, after = list(functions(original)), list(functions(changed))
    if [name for name, _ in before] != [name for name, _ in after]:
        return False
    different = [(old, code) for (_, old), (_, code) in zip(before, after, strict=True) if old != code]
    new = {(old.co_qualname, old.co_firstlineno): code for old, code in different}
    # References to a lambda or comprehension at module level cannot be found.
    if not new or any(name.startswith("<") for name, _ in new):
        return False
    found = set()
    for each in _held(vars(importlib.import_module(module)).values(), module):
        place = (each.__code__.co_qualname, each.__code__.co_firstlineno)
        if place in new:
            if len(each.__code__.co_freevars) != len(new[place].co_freevars):
                return False
            each.__code__ = new[place]
            found.add(place)
    return found == set(new)


def _held(values: Iterable[Any], module: str) -> Iterator[FunctionType]:
    """The functions of a module among some values and in its classes."""
    for each in values:
        if isinstance(each, type) and each.__module__ == module:
            yield from _held(vars(each).values(), module)
        for inner in (each, *(getattr(each, name, None) for name in ("fget", "func", "__func__", "__wrapped__"))):
            if isinstance(inner, FunctionType) and inner.__module__ == module:
                yield inner


class _Finder(importlib.abc.MetaPathFinder):
    """An import finder that returns the mutant instead of its module."""

    def __init__(self, mutant: Mutant, code: CodeType) -> None:
        self._mutant = mutant
        self._code = code

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._mutant.module:
            return None
        return importlib.util.spec_from_loader(name, _Loader(self._code), origin=str(self._mutant.file))


class _Loader(importlib.abc.Loader):
    def __init__(self, code: CodeType) -> None:
        self._code = code

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, module.__dict__)


def _import_again(mutant: Mutant, code: CodeType) -> None:
    for name in [each for each in sys.modules if each.startswith(_OURS)]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(mutant, code))
