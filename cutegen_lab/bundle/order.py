"""Orders definitions so that each comes after those that it needs when the module is executed."""

from __future__ import annotations

from collections.abc import Iterator

from cutegen_lab.bundle.modules import Module, Unit
from cutegen_lab.bundle.reach import Definition, Reach, is_soft


def ordered(reach: Reach) -> list[Unit]:
    """Files after those that they refer to, unless these form a cycle; definitions of a file in their original order,
    except those that must come earlier."""
    kept = set(reach.units)
    done: dict[Unit, None] = {}
    begun: set[Unit] = set()

    def place(unit: Unit) -> None:
        if unit in begun or unit not in kept:
            return
        begun.add(unit)
        for needed in _needed(unit, reach):
            place(needed)
        done[unit] = None

    def place_all(units: list[Unit]) -> None:
        for unit in units:
            place(unit)

    for module in _files(reach):
        place_all([unit for unit in module.units if unit in kept])
    return list(done)


def _needed(unit: Unit, reach: Reach) -> Iterator[Unit]:
    """Definitions that must exist when ``unit`` is executed, nearest first."""
    for earlier in unit.module.units:
        if earlier is unit:
            break
        if earlier.binds & (unit.binds | unit.changes) or earlier.changes & unit.binds:
            yield earlier
    yield from _used_now(unit, reach, set())


def _used_now(unit: Unit, reach: Reach, seen: set[Unit], called: bool = False) -> Iterator[Unit]:
    """Definitions used when ``unit`` is executed. ``called``: its function bodies are executed too."""
    if unit in seen:
        return
    seen.add(unit)
    for one in reach.facts(unit).live():
        if not isinstance(one.target, Definition) or is_soft(one, unit.module):
            continue
        if not one.reference.now and not called:
            continue
        runs = one.reference.call is not None or one.reference.decorates is not None or called
        for needed in one.target.module.by_name[one.target.name]:
            if needed is unit:
                continue
            if runs:
                yield from _used_now(needed, reach, seen, True)
            yield needed


def _files(reach: Reach) -> list[Module]:
    kept = set(reach.units)
    uses: dict[Module, dict[Module, None]] = {unit.module: {} for unit in reach.units}
    for unit in reach.units:
        for one in reach.facts(unit).live():
            if isinstance(one.target, Definition) and one.target.module in uses:
                uses[unit.module][one.target.module] = None
    found: dict[Module, None] = {}
    begun: set[Module] = set()
    for start in uses:
        left: list[tuple[Module, bool]] = [(start, False)]
        while left:
            module, finished = left.pop()
            if finished:
                found[module] = None
            elif module not in begun:
                begun.add(module)
                left.append((module, True))
                left += [(other, False) for other in reversed(uses[module])]
    return [module for module in found if any(unit in kept for unit in module.units)]
