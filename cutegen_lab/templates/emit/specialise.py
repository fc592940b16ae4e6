"""Text of a module for one config.

Folding uses the config, and the values of the module's tests, loops and parameters in all observed workloads
(:mod:`~cutegen_lab.templates.emit.observe`). Only values on which all of them agree are folded, so the result is
valid for all of them, but perhaps not for other shapes. The caller must compile the result and compare its PTX
(``session/specialised.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import libcst as cst

from cutegen_lab.templates.emit.apart import with_displays_unpacked
from cutegen_lab.templates.emit.branches import Branches
from cutegen_lab.templates.emit.config import settings, spellings, with_constants, with_constants_first
from cutegen_lab.templates.emit.evaluate import UNKNOWN, evaluate, literal, returned
from cutegen_lab.templates.emit.inline import inlined
from cutegen_lab.templates.emit.literals import ReadsReplaced
from cutegen_lab.templates.emit.names import bindings, called, dotted, functions, loads, names_of, target_names
from cutegen_lab.templates.emit.observe import Facts, Probe
from cutegen_lab.templates.emit.parameters import ENTRIES, without_constant_parameters
from cutegen_lab.templates.emit.prose import with_updated_docs
from cutegen_lab.templates.emit.reach import reachable
from cutegen_lab.templates.emit.rename import with_good_names
from cutegen_lab.templates.emit.repeats import Repeats, computed_once
from cutegen_lab.templates.emit.results import with_read_results_only, with_results_of_one_open
from cutegen_lab.templates.emit.simplify import CHANGE_NOTHING, Simplify
from cutegen_lab.templates.emit.split import with_short_tuples_open
from cutegen_lab.templates.emit.tidy import tidy

_MOST_ROUNDS = 24
_MODULES = {"math", "cute", "cutlass", "min", "max", "len", "True", "False", "None"}
_COMPUTES = {"min", "max", "len", "math.gcd", "math.prod", "cute.ceil_div"}


def specialise(probe: Probe, config: Mapping[str, Any], *, rules: bool = False) -> str:
    """Text of the module of ``probe`` for ``config`` (missing names have the defaults of ``launch``).

    ``rules``: keep ``constraints``, because they rule out a workload. Raises CannotSpecialise.
    """
    values = settings(probe.module, config)
    facts = probe.facts()
    module = probe.module.visit(_Observed(facts, set(functions(probe.module)), set(_constants(probe.module))))
    assert isinstance(module, cst.Module)
    replaced: dict[str, dict[str, str | None]] = {"launch": spellings(module, values)}
    module = _without_aliases(with_constants(module, values))
    entries = {"launch", "workspace", *(("constraints",) if rules else ())}
    module = _folded(module, facts, entries, False, replaced)  # keeps parameters whose value would need a name
    module = inlined(module, probe.module)
    module = _folded(module, facts, entries, True, replaced)
    module = with_good_names(computed_once(module))
    short = with_constants_first(module).visit(Repeats())
    for counted in (loads, bindings):  # these caches hold metadata of trees that are no longer needed
        counted.cache_clear()
    assert isinstance(short, cst.Module)
    return tidy(with_updated_docs(short, probe.module, replaced))


def _folded(
    module: cst.Module,
    facts: Facts,
    entries: Collection[str],
    numbers: bool,
    replaced: dict[str, dict[str, str | None]],
) -> cst.Module:
    """Repeats the passes until nothing changes. Adds the removed parameters to ``replaced``, by function."""
    settled = dict[cst.CSTNode, str]()
    for _ in range(_MOST_ROUNDS):
        before = module
        module = reachable(module, entries)
        constants = _constants(module)
        if numbers:
            module = with_read_results_only(with_short_tuples_open(with_displays_unpacked(module)))
        simpler = _simplified(module, constants, settled)
        module, left = without_constant_parameters(simpler, constants, facts.arguments, numbers)
        for function, texts in left.items():
            replaced.setdefault(function, {}).update({name: _simple(text) for name, text in texts.items()})
        if len(module.body) == len(before.body) and all(a is b for a, b in zip(module.body, before.body, strict=True)):
            # Rewrites ``return (x,)`` to ``return x`` in functions that are not inlined.
            opened = with_results_of_one_open(module) if numbers else module
            if opened is module:
                break
            module = opened
    return module


def _simple(text: str | None) -> str | None:
    """The simplified text of an expression: ``THREADS`` for ``THREADS * 1``."""
    if text is None:
        return None
    simple = cst.parse_expression(text).visit(Simplify({}, set(), {}))
    assert isinstance(simple, cst.BaseExpression)
    return cst.Module([]).code_for_node(simple)


def _simplified(module: cst.Module, constants: Mapping[str, Any], settled: dict[cst.CSTNode, str]) -> cst.Module:
    """``module`` simplified once. ``settled``: statements that no longer change, each with the facts on which that
    depends."""
    pure, returns = _pure(module), _returns(module, constants)
    given = repr((sorted(constants.items()), sorted(pure), sorted(returns.items())))
    body = []
    for statement in module.body:
        if settled.get(statement) != given:
            simpler = statement.visit(Simplify(constants, pure, returns))
            assert isinstance(simpler, cst.BaseStatement)
            if simpler.deep_equals(statement):
                settled[statement] = given
            else:
                statement = simpler
        body.append(statement)
    return module.with_changes(body=body)


class _Observed(Branches):
    """Folds observed values."""

    def __init__(self, facts: Facts, module_functions: set[str], constants: set[str]) -> None:
        super().__init__()
        self._facts, self._functions, self._constants = facts, module_functions, constants
        self._known = set[str]()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool | None:
        """Collects its parameters that had a single value."""
        self._known = {name for function, name in self._facts.arguments if function == node.name.value}
        self._known |= self._constants
        return super().visit_FunctionDef(node)

    def stays(self, loop: cst.For) -> bool:
        found = self._facts.ranges.get(loop)
        return super().stays(loop) and loop not in self._facts.unseen and (found is None or len(range(*found)) > 1)

    def test(self, original: cst.If | cst.IfExp, updated: cst.If | cst.IfExp) -> bool | None:
        return self._facts.tests.get(original)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """Replaces a value that depends on the config only."""
        names = {name for name in loads(original_node.value) if name not in _MODULES} - self._functions
        if names <= self._known and called(original_node.value) <= _COMPUTES | self._functions:
            self._known.update(target_names(original_node))
            if original_node in self._facts.values:
                return updated_node.with_changes(value=literal(self._facts.values[original_node]))
        else:
            self._known.difference_update(target_names(original_node))
        return updated_node

    def trips(self, original: cst.For, updated: cst.For) -> range | None:
        found = self._facts.ranges.get(original)
        return range(*found) if found else None


def _without_aliases(module: cst.Module) -> cst.Module:
    """Replaces module-level names of functions with the functions they stand for."""
    bound, found = bindings(module), dict[str, cst.BaseExpression]()
    for statement in module.body:
        only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        names = target_names(only) if isinstance(only, cst.Assign) else []
        if isinstance(only, cst.Assign) and len(names) == 1 and bound[names[0]] == 1 and dotted(only.value):
            function = dotted(only.value) in functions(module) or "." in dotted(only.value)
            found |= {names[0]: only.value} if function else {}
    changed = module.visit(ReadsReplaced(found)) if found else module
    assert isinstance(changed, cst.Module)
    return changed


def _constants(module: cst.Module) -> dict[str, Any]:
    """Names to which the module assigns a constant expression, with their values."""
    found: dict[str, Any] = {}
    for statement in module.body:
        if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Assign):
            names = names_of(statement.body[0].targets[0].target)
            value = evaluate(statement.body[0].value, found)
            if len(names) == 1 and value is not UNKNOWN:
                found[names[0]] = value
    return found


def _returns(module: cst.Module, constants: Mapping[str, Any]) -> dict[str, Any]:
    """Results of functions without parameters that are computed from constants only."""
    plain = {name: f for name, f in functions(module).items() if name not in ENTRIES and not f.decorators}
    found = {name: returned(function, constants) for name, function in plain.items()}
    return {name: value for name, value in found.items() if isinstance(value, int | bool)}


def _pure(module: cst.Module) -> set[str]:
    """Functions that only compute with shapes: neither they nor the functions they call are compiled."""
    calls = {name: called(function) for name, function in functions(module).items() if not function.decorators}
    found = set(calls)
    while effects := {name for name in found if not calls[name] <= found | CHANGE_NOTHING}:
        found -= effects
    return found
