"""Chooses a unique name for each definition and import of the bundle: the original name if it is free and shadows
nothing."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator

from cutegen_lab.bundle.modules import Unit
from cutegen_lab.bundle.reach import Definition, External, ModuleValue, Reach

_BUILTINS = frozenset(dir(builtins))
Key = Definition | External | ModuleValue


def names_of(reach: Reach, units: list[Unit], entry: Definition) -> dict[Key, str]:
    avoid: dict[Key, set[str]] = {}
    spelled: dict[External, Counter[str]] = {}
    taken = set(_BUILTINS)
    for unit in units:
        facts = reach.facts(unit)
        taken |= facts.undefined.keys()
        for name in sorted(unit.binds):
            avoid.setdefault(Definition(unit.module, name), set())
        for one in facts.live():
            target, reference = one.target, one.reference
            if not isinstance(target, (Definition, External, ModuleValue)):
                continue
            if isinstance(target, External):
                target = External(target.dotted)
                last = reference.names[one.used - 1] if one.used else reference.root
                spelled.setdefault(target, Counter())[last] += 1
            avoid.setdefault(target, set()).update(reference.around)
    for members in reach.values.values():
        avoid.setdefault(External("types.SimpleNamespace"), set())
        for member in members.values():
            avoid.setdefault(External(member.dotted) if isinstance(member, External) else member, set())
    kept = {name for key in avoid if isinstance(key, Definition) for name in [key.name]}
    found: dict[Key, str] = {}
    keys = sorted(avoid, key=lambda key: (not _is_entry(key, entry), isinstance(key, Definition)))
    for key in keys:
        for name in _choices(key, entry, spelled):
            hides = name in taken or name in avoid[key]
            if _is_entry(key, entry) or not (
                hides or (isinstance(key, External) and name in kept and name != _last(key))
            ):
                found[key] = name
                taken.add(name)
                break
    return found


def _is_entry(key: Key, entry: Definition) -> bool:
    """Whether ``key`` is the entry, which becomes ``launch``, or another name of the contract in the same module, which
    is kept."""
    return isinstance(key, Definition) and key.module is entry.module and key.name in ROOT_NAMES | {entry.name}


ROOT_NAMES = frozenset({"TUNABLE", "constraints", "workspace"})


def _last(key: External) -> str:
    return key.dotted.rsplit(".", 1)[-1]


def _choices(key: Key, entry: Definition, spelled: dict[External, Counter[str]]) -> Iterator[str]:
    if isinstance(key, External):
        yield from [name for name, _ in spelled[key].most_common()] if key in spelled else [_last(key)]
        base = key.dotted.replace(".", "_")
    elif isinstance(key, ModuleValue):
        yield key.name
        base = f"{key.name}_module"
    else:
        is_launch = key == entry and any(
            isinstance(unit.node, (ast.FunctionDef, ast.AsyncFunctionDef)) for unit in key.module.by_name[key.name]
        )
        yield "launch" if is_launch else key.name
        *folders, stem = key.module.label.removesuffix(".py").split("/")
        if stem == "__init__" and folders:
            stem = folders.pop()
        base = re.sub(r"\W", "_", f"{stem}_{key.name.lstrip('_')}")
        yield base
        if folders:
            base = re.sub(r"\W", "_", f"{folders[-1]}_{base}")
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1
