"""Finds what a candidate changed in the DSL, in the Python modules that it may import, and in the cage.

Names can be aliased in more ways than the gate follows. So state is compared, before the candidate is imported and
after: the dictionaries of modules, classes and objects, and the code and defaults of functions. The DSL changes its own
modules while it compiles: it imports submodules, fills caches, sets private variables. Allowed are new modules, new
entries of containers, data under private names, and functions and classes from the DSL's own files under new names. A
change that is undone before the comparison is not seen.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from operator import attrgetter, is_
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from cutegen_lab.compile.gate import ALLOWED_IMPORTS, HARMLESS_NAMES

_ROOTS = frozenset(
    name.partition(".")[0] for name in (*ALLOWED_IMPORTS, *HARMLESS_NAMES, "builtins", "cutegen_lab", __name__)
)
_NOTHING = object()
CANDIDATE_MODULE = "candidate"
_code, _defaults, _keywords = (attrgetter(name) for name in ("__code__", "__defaults__", "__kwdefaults__"))
_class_dict: Callable[[type], Mapping[str, Any]] = type.__dict__["__dict__"].__get__
_class_bases: Callable[[type], tuple[type, ...]] = type.__dict__["__bases__"].__get__
_module_dict: Callable[[ModuleType], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__


Changes = Callable[[], Iterable[str]]


class Kind(Enum):
    """What a dictionary holds."""

    NAMES = auto()  # names in a module or a class
    STATE = auto()  # attributes of an object or of a function
    ENTRIES = auto()  # entries of a container


@dataclass(frozen=True)
class _Dictionary:
    path: str
    now: Mapping[Any, Any]
    keys: tuple[Any, ...]
    values: tuple[Any, ...]
    kind: Kind
    of: type  # class of the object whose attributes ``now`` holds


class Snapshot:
    """State of these modules at creation; :meth:`changes` compares the present state with it."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._dicts: list[_Dictionary] = []
        self._functions: dict[FunctionType, str] = {}
        self._bases: list[tuple[str, type, tuple[type, ...]]] = []
        modules = {name: module for name, module in sys.modules.items() if isinstance(module, ModuleType)}
        self._folders = tuple(_folders(modules))
        self._compare("sys.modules", sys.modules, Kind.ENTRIES)
        for name, module in modules.items():
            if _is_ours(name):
                self._compare(name, _module_dict(module))
        for one in _classes():
            if _is_ours(_class_dict(one).get("__module__")):
                self._visit("", one)
        self._parts = [[*map(part, self._functions)] for part in (_code, _defaults, _keywords)]

    def changes(self, own: str = CANDIDATE_MODULE) -> Iterator[str]:
        """Dotted names of everything that differs; ``own`` is the candidate's module."""
        for path, of, bases in self._bases:
            if _class_bases(of) != bases:
                yield f"{path}.__bases__"
        for at, part in enumerate((_code, _defaults, _keywords)):
            if not all(map(is_, map(part, self._functions), self._parts[at])):
                for (function, path), before in zip(self._functions.items(), self._parts[at], strict=True):
                    rewritten = part is _code and self._is_preprocessed(function, before)
                    if part(function) is not before and not rewritten:
                        yield path
        for one in self._dicts:
            now = one.now
            if len(now) == len(one.keys) and all(map(is_, now.values(), one.values)) and all(map(is_, now, one.keys)):
                continue
            before, after = dict(zip(one.keys, one.values, strict=True)), dict(now)
            for name in {**before, **after}:
                old, new = before.get(name, _NOTHING), after.get(name, _NOTHING)
                if old is new or (now is sys.modules and name == own) or self._may_differ(one, str(name), old, new):
                    continue
                yield f"{one.path}[{str(name)[:80]!r}]" if one.kind is Kind.ENTRIES else f"{one.path}.{name}"

    def _may_differ(self, one: _Dictionary, name: str, old: object, new: object) -> bool:
        """Whether the DSL itself may have replaced ``old`` with ``new``."""
        if one.of is FunctionType and name == "_dsl_cls" and new is _NOTHING:
            return True  # attribute of a jit function, set when it is first called
        if _is_code(old):
            return False
        if one.kind is Kind.ENTRIES:
            return True
        if one.kind is Kind.STATE:
            # Code in an instance attribute may not shadow a method of its class.
            return not (_is_code(new) and _is_code(getattr(one.of, name, None)))
        return self._is_the_dsls(name, old, new)

    def _is_the_dsls(self, name: str, old: object, new: object) -> bool:
        """Whether the DSL may have set ``name`` in a module or class to ``new``: an imported module, a class or
        function from the files in :func:`_folders`, or data under a private name."""
        if isinstance(new, ModuleType):
            return old is _NOTHING and new is sys.modules.get(_module_dict(new).get("__name__", ""))
        if isinstance(new, type):
            module = sys.modules.get(_class_dict(new).get("__module__", ""))
            return isinstance(module, ModuleType) and self._is_file_of_the_dsl(getattr(module, "__file__", None))
        if not _is_code(new):
            return name.startswith("_")
        while isinstance(new, (classmethod, staticmethod)):
            new = new.__func__
        return isinstance(new, FunctionType) and self._is_file_of_the_dsl(new.__code__.co_filename)

    def _is_preprocessed(self, function: FunctionType, before: CodeType) -> bool:
        """Whether the DSL replaced the code of a jit function when it was called, by that function's source rewritten
        for tracing."""
        now, kept = function.__code__, function.__dict__.get("_original_code")
        same = (now.co_filename, now.co_name) == (before.co_filename, before.co_name)
        return kept is before and same and self._is_file_of_the_dsl(now.co_filename)

    def _is_file_of_the_dsl(self, name: object) -> bool:
        return isinstance(name, str) and name.startswith(self._folders)

    def _compare(self, path: str, one: Mapping[Any, Any], kind: Kind = Kind.NAMES, of: type = object) -> None:
        self._dicts.append(_Dictionary(path, one, tuple(one), tuple(one.values()), kind, of))
        if path != "sys.modules":
            for name, value in list(one.items()):
                self._visit(f"{path}[{str(name)[:80]!r}]" if kind is Kind.ENTRIES else f"{path}.{name}", value)

    def _visit(self, path: str, value: object) -> None:
        if isinstance(value, (classmethod, staticmethod)):
            return self._visit(path, value.__func__)
        if isinstance(value, ModuleType) or id(value) in self._seen:
            return None
        if isinstance(value, property):
            for part in (value.fget, value.fset, value.fdel):
                self._visit(path, part)
        elif isinstance(value, FunctionType):
            self._seen.add(id(value))
            self._functions[value] = path
            if value.__dict__:
                self._compare(path, value.__dict__, Kind.STATE, FunctionType)
        elif isinstance(value, type):
            if _is_ours(_class_dict(value).get("__module__")):
                self._seen.add(id(value))
                path = f"{value.__module__}.{value.__qualname__}"
                self._bases.append((path, value, _class_bases(value)))
                self._compare(path, _class_dict(value))
        elif type(value) is dict:
            self._seen.add(id(value))
            self._compare(path, value, Kind.ENTRIES)
        elif _is_ours(_class_dict(type(value)).get("__module__")):
            members = getattr(value, "__dict__", None)
            if type(members) is dict:
                self._seen.add(id(value))
                self._compare(path, members, Kind.STATE, type(value))
        return None


def _is_code(value: object) -> bool:
    """Whether ``value`` is callable, a module, or a descriptor, which controls attribute access."""
    return callable(value) or isinstance(value, ModuleType) or hasattr(type(value), "__get__")


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _ROOTS


def _classes() -> Iterator[type]:
    """All classes, including those in no module's namespace."""
    seen: set[int] = set()
    left: list[type] = [object]
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            left += type.__subclasses__(one)


def _folders(modules: Mapping[str, ModuleType]) -> Iterable[str]:
    """Folders with the files of Python, the DSL and this package."""
    for name in ("stdlib", "platstdlib"):
        yield sysconfig.get_path(name) + "/"
    for name, module in modules.items():
        if "." not in name and name in _ROOTS:
            for folder in getattr(module, "__path__", ()):
                yield str(Path(folder)) + "/"
