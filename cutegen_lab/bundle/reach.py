"""Definitions that the entry reaches, and references that a candidate may not have.

A function that uses a forbidden module (torch, os …) keeps its signature, and its body raises an error that names the
original place: host helpers next to a kernel are rarely called at compile time. If a definition uses a forbidden module
outside function bodies, functions that use this definition are treated in the same way.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cutegen_lab.bundle.mentions import Mentions
from cutegen_lab.bundle.modules import Finder, Import, Module, Unit, comes_along, imports_of
from cutegen_lab.bundle.references import Found, Function, Reference, references
from cutegen_lab.compile.gate import HARMLESS_NAMES
from cutegen_lab.core.errors import InputError

_FOR_CHECKERS = ("typing.override", "typing_extensions.override", "typing_extensions.final")
_CALLED_BY_DSL = {"ir_value", "mlir_type", "get_mlir_types", "get_dynamic_type"}
_BUILTINS = frozenset(dir(builtins)) | {"__name__", "__doc__"}
# Base classes that call only methods with Python's own names (``__init__`` …).
_PASSIVE_BASES = {"typing.NamedTuple", "typing.Protocol", "typing.Generic", "enum.Enum", "enum.IntEnum", "enum.IntFlag",
                  "enum.Flag", "enum.auto"}  # fmt: skip
_ENVIRONMENT = {f"os.{name}" for name in ("environ.get", "getenv")}
CONTRACT_NAMES = ("TUNABLE", "constraints", "workspace")  # names of the contract other than ``launch``


@dataclass(frozen=True)
class Definition:
    """``name`` as ``module`` defines it."""

    module: Module
    name: str


@dataclass(frozen=True)
class External:
    """A module that a candidate may import (``cutlass.cute``), or a name in one. ``loads``: a module that is imported
    too."""

    dotted: str
    loads: str = ""


@dataclass(frozen=True)
class LocalModule:
    path: Path


@dataclass(frozen=True)
class Refused:
    """A reference that candidates may not have, and the reason."""

    what: str
    action: str


@dataclass(frozen=True)
class ModuleValue:
    """A local module used as a value: it becomes a namespace of its attributes that are used."""

    path: Path
    name: str


Target = Definition | External | LocalModule | ModuleValue | Refused | None  # None: a builtin, or undefined


@dataclass(frozen=True)
class Resolved:
    """A reference, its target, and the number of attributes of the chain that lead to the target."""

    reference: Reference
    target: Target
    used: int


@dataclass
class Facts:
    """A unit of the bundle. ``stubs``: functions whose bodies are replaced, with the line and the forbidden
    reference."""

    unit: Unit
    found: Found
    resolved: list[Resolved] = field(default_factory=list)
    stubs: dict[Function, tuple[int, Refused]] = field(default_factory=dict)
    refused: tuple[int, Refused] | None = None
    undefined: dict[str, int] = field(default_factory=dict)
    unused: set[Function] = field(default_factory=set)  # methods that are never called

    def live(self) -> Iterator[Resolved]:
        """References that stay in the text."""
        for one in self.resolved:
            owner, member = one.reference.owner, one.reference.member
            if (owner is None or owner not in self.stubs) and (member is None or member not in self.unused):
                yield one

    @property
    def stubs_left(self) -> dict[Function, tuple[int, Refused]]:
        return {function: why for function, why in self.stubs.items() if function not in self.unused}


def is_soft(one: Resolved, module: Module) -> bool:
    """Whether the reference is in an annotation that is never evaluated."""
    reference = one.reference
    return reference.annotation is not None and (reference.quoted is not None or module.future_annotations)


class Reach:
    """Units that ``roots`` reach. Raises InputError if the entry itself needs something forbidden."""

    def __init__(self, finder: Finder, roots: list[Definition]) -> None:
        self._finder = finder
        self._facts: dict[Unit, Facts] = {}
        self._refused: dict[Unit, tuple[int, Refused]] = {}
        self.roots = roots
        self.values: dict[ModuleValue, dict[str, Definition | External]] = {}
        while True:
            self.units = self._reached()
            known = len(self._refused)
            for unit in self.units:
                facts = self._facts[unit]
                if facts.refused and unit not in self._refused:
                    self._refused[unit] = facts.refused
            if len(self._refused) == known:
                break
            self._facts.clear()
        self._check_roots()

    def facts(self, unit: Unit) -> Facts:
        if unit not in self._facts:
            self._facts[unit] = self._judged(unit)
        return self._facts[unit]

    def _reached(self) -> list[Unit]:
        seen: dict[Unit, None] = {}
        mentioned = Mentions()
        left = [unit for root in self.roots for unit in root.module.by_name[root.name]]
        self.values = {}
        while left:
            while left:
                unit = left.pop()
                if unit in self._refused:
                    continue
                facts = self.facts(unit)
                if unit not in seen:
                    seen[unit] = None
                    facts.unused = set() if self._is_called_by_others(unit) else set(_methods(unit.node))
                    mentioned.add(unit.node, facts.unused)
                for one in facts.live():
                    if not is_soft(one, unit.module):
                        left += [found for found in self._units(one.target, unit) if found not in seen]
            for unit in seen:
                facts = self.facts(unit)
                if called := {method for method in facts.unused if method.name in mentioned}:
                    facts.unused -= called
                    for method in called - set(facts.stubs):
                        mentioned.add(method, facts.unused)
                    left.append(unit)
            left += self._modifiers(seen)
        return list(seen)

    def _units(self, target: Target, user: Unit) -> list[Unit]:
        if isinstance(target, Definition):
            return target.module.by_name[target.name]
        if not isinstance(target, ModuleValue):
            return []
        members = self.values.setdefault(target, {})
        for name in sorted({node.attr for node in ast.walk(user.node) if isinstance(node, ast.Attribute)}):
            found = self._member(LocalModule(target.path), name, set())
            if isinstance(found, (Definition, External)):
                members[name] = found
        return [
            unit for found in members.values() if isinstance(found, Definition) for unit in self._units(found, user)
        ]

    def _is_called_by_others(self, unit: Unit) -> bool:
        """Whether a class inherits from a class of the DSL or of Python that may call any of its methods."""
        if not isinstance(unit.node, ast.ClassDef):
            return True
        bases = {id(node) for base in unit.node.bases for node in ast.walk(base)}
        for one in self.facts(unit).resolved:
            if id(one.reference.chain) not in bases or one.reference.member is not None:
                continue
            if isinstance(one.target, Definition):
                for other in one.target.module.by_name[one.target.name]:
                    if other is not unit and isinstance(other.node, ast.ClassDef) and self._is_called_by_others(other):
                        return True
            elif isinstance(one.target, External) and one.target.dotted not in _PASSIVE_BASES:
                return True
        return False

    def _modifiers(self, seen: Iterable[Unit]) -> list[Unit]:
        """Statements that change an included definition: ``Tile.layout = ...``, ``register(Tile)``."""
        bound: dict[Module, set[str]] = {}
        for unit in seen:
            bound.setdefault(unit.module, set()).update(unit.binds)
        known = set(seen)
        return [
            unit
            for module, names in bound.items()
            for unit in module.units
            if unit not in known and unit not in self._refused and not unit.binds and unit.changes & names
        ]

    def left_out(self) -> Iterator[tuple[Unit, str]]:
        """Top-level statements that change an imported module, which candidates may not do."""
        kept = set(self.units)
        for module in dict.fromkeys(unit.module for unit in self.units):
            for unit in module.units:
                if unit in kept or unit.binds or not isinstance(unit.node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                    continue
                for name in sorted(unit.changes):
                    target, _ = self._resolve(Reference(name, (), ast.Name(name), frozenset()), module)
                    if isinstance(target, External):
                        yield unit, target.dotted

    def _judged(self, unit: Unit) -> Facts:
        facts = Facts(unit, references(unit.node))
        for reference in facts.found.references:
            target, used = self._resolve(reference, unit.module)
            if target is None and reference.root not in _BUILTINS and not reference.stored:
                facts.undefined.setdefault(reference.root, (reference.quoted or reference.chain).lineno)
            one = Resolved(reference, target, used)
            facts.resolved.append(one)
            if isinstance(target, Refused) and not (self.environment_default(one) or self._only_read(one)):
                self._refuse(facts, reference, target)
        for node, owner in facts.found.inner_imports:
            if owner is None and not isinstance(unit.node, (ast.If, ast.Try)):
                facts.refused = facts.refused or (node.lineno, Refused("an import", "Import at the top of the file."))
        return facts

    @staticmethod
    def _only_read(one: Resolved) -> bool:
        """True if the reference has no effect at run time: an annotation, ``@override``."""
        if one.reference.annotation is not None:
            return True
        return one.reference.decorates is not None and one.target in [_not_allowed(name) for name in _FOR_CHECKERS]

    @staticmethod
    def _refuse(facts: Facts, reference: Reference, why: Refused) -> None:
        at = reference.chain.lineno if reference.quoted is None else reference.quoted.lineno
        if reference.owner is not None:
            facts.stubs.setdefault(reference.owner, (at, why))
        elif reference.default_of is not None:
            facts.stubs.setdefault(reference.default_of[0], (at, why))
        elif reference.decorates is not None and not isinstance(reference.decorates, ast.ClassDef):
            facts.stubs.setdefault(reference.decorates, (at, why))
        else:
            facts.refused = facts.refused or (at, why)

    @staticmethod
    def environment_default(one: Resolved) -> bool:
        """True for a read of an environment variable, which is treated as not set."""
        reference = one.reference
        if not isinstance(one.target, Refused) or reference.call is None:
            return False
        return one.target.what in _ENVIRONMENT and 1 <= len(reference.call.args) <= 2 and not reference.call.keywords

    def _resolve(self, reference: Reference, module: Module) -> tuple[Target, int]:
        if reference.local:
            target = self._first([self._imported(found, module) for found in reference.local])
        else:
            target = self._named(reference.root, module, set())
        used = 0
        names = reference.names
        while isinstance(target, LocalModule) and used < len(names):
            target = self._member(target, names[used], set())
            used += 1
        if isinstance(target, LocalModule):
            if target.path.is_file() and not reference.now:
                return ModuleValue(target.path, (reference.root, *names)[used]), used
            label = self._finder.read(target.path).label if target.path.is_file() else target.path.name
            return Refused(f"the module {label} as a value", "Use its definitions by name."), used
        rest = names[used:]
        if isinstance(target, Refused) and rest:
            whole = Refused(".".join([target.what, *rest]), target.action)
            return whole, used
        if isinstance(target, External) and rest and rest[0] not in HARMLESS_NAMES.get(target.dotted, rest):
            return _not_allowed(f"{target.dotted}.{rest[0]}"), used
        if isinstance(target, Definition):
            if reference.stored and (target.module is not module or reference.owner is not None) and used:
                return Refused(f"an assignment to {'.'.join([reference.root, *names])}", "Make it an argument."), used
            for unit in target.module.by_name[target.name]:
                if unit in self._refused:
                    line, why = self._refused[unit]
                    what = f"{target.name} ({target.module.label}:{line} uses {why.what})"
                    return Refused(what, why.action), used
        return target, used

    def _named(self, name: str, module: Module, seen: set[tuple[Path, str]]) -> Target:
        """The target of ``name`` at the top level of ``module``."""
        if (module.path, name) in seen:
            return None
        seen = seen | {(module.path, name)}
        units = module.by_name.get(name, [])
        if any(not isinstance(unit.node, (ast.If, ast.Try)) for unit in units):
            return Definition(module, name)
        found = self._first([self._imported(one, module, seen) for one in module.imports.get(name, [])])
        if units and (found is None or isinstance(found, Refused)):
            return Definition(module, name)
        if found is None and name not in _BUILTINS and module.stars:
            one, line = module.stars[0]
            raise InputError(
                f"{module.label}:{line}: `from {'.' * one.level}{one.module} import *` hides where {name!r} comes from",
                f"Import {name} by name there.",
            )
        if name == "__file__":
            return _not_allowed(name)
        return found

    @staticmethod
    def _first(targets: list[Target]) -> Target:
        """The first of several alternatives (``try: import ...``) that is allowed."""
        return next(
            (t for t in targets if t is not None and not isinstance(t, Refused)), targets[0] if targets else None
        )

    def _imported(self, found: Import, module: Module, seen: set[tuple[Path, str]] | None = None) -> Target:
        if found.level:
            path = self._finder.relative(found.module, found.level, module.path)
            if path is None:
                label = f"{'.' * found.level}{found.module}"
                raise InputError(f"{module.label}:{found.line}: there is no module {label}", "Check the import.")
        else:
            path = self._finder.absolute(found.root or found.module, module.path)
        if path is None:
            dotted = ".".join(part for part in (found.root or found.module, found.name) if part)
            if not (comes_along(found.module) or comes_along(dotted)):
                return _not_allowed(dotted)
            from_python = found.name and found.module.split(".")[0] in sys.stdlib_module_names
            if from_python and not hasattr(importlib.import_module(found.module), found.name):
                return _not_allowed(dotted)  # a name that only a later Python version has
            return External(dotted, found.module if found.root else "")
        target: Target = LocalModule(path)
        return self._member(LocalModule(path), found.name, seen or set()) if found.name else target

    def can_import(self, node: ast.Import | ast.ImportFrom, module: Module) -> bool:
        return not any(isinstance(self._imported(found, module), Refused) for _, found in imports_of(node))

    def _member(self, package: LocalModule, name: str, seen: set[tuple[Path, str]]) -> Target:
        if package.path.is_file():
            found = self._named(name, self._finder.read(package.path), seen)
            if found is not None:
                return found
        path = self._finder.below(package.path, name)
        if path is not None:
            return LocalModule(path)
        label = self._finder.read(package.path).label if package.path.is_file() else package.path.name
        return Refused(f"{name}, which {label} does not define", "Check the import.")

    def _check_roots(self) -> None:
        for root in self.roots:
            for unit in root.module.by_name[root.name]:
                why = self._refused.get(unit) or next(iter(self.facts(unit).stubs_left.values()), None)
                if why is not None:
                    line, refused = why
                    raise InputError(
                        f"{root.module.label}:{line}: {root.name} uses {refused.what}, which candidates may not use",
                        refused.action,
                    )


def _methods(node: ast.stmt) -> Iterator[Function]:
    """Methods of a class, except those that Python or the DSL calls implicitly (``__…__`` and ``_CALLED_BY_DSL``)."""
    for child in node.body if isinstance(node, ast.ClassDef) else []:
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = child.name
            python_calls = name.startswith("__") and name.endswith("__")
            if not python_calls and name not in _CALLED_BY_DSL:
                yield child


def _not_allowed(what: str) -> Refused:
    top = what.split(".")[0]
    action = {
        "torch": "Use PyTorch only in the reference: pass the value as an argument of launch, or write a constant.",
        "os": "Write the value there: a candidate cannot read the environment.",
        "argparse": "Write the values there: a candidate has no command line.",
    }.get(top, f"Write it without {top}, or remove it from the code that launch uses.")
    if top not in sys.stdlib_module_names and top not in ("torch", "numpy", "triton"):
        action = f"Give a file of {top} too, so that it can be joined, or write it without {top}."
    return Refused(what, action)
