"""Text of a module for one config.

Folding uses the config, and the values of the module's tests, loops and parameters in all observed workloads
(:mod:`~cutegen_lab.templates.emit.observe`). Only values on which all of them agree are folded, so the result serves
them all; nothing is promised for other shapes. The caller must compile the result and compare its PTX
(``session/specialised.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import libcst as cst

from cutegen_lab.templates.emit.branches import Branches
from cutegen_lab.templates.emit.config import settings, with_constants, with_constants_first
from cutegen_lab.templates.emit.evaluate import UNKNOWN, evaluate, literal
from cutegen_lab.templates.emit.inline import inlined
from cutegen_lab.templates.emit.names import bindings, called, dotted, functions, loads, names_of, target_names, within
from cutegen_lab.templates.emit.observe import Facts, Probe
from cutegen_lab.templates.emit.parameters import without_constant_parameters
from cutegen_lab.templates.emit.reach import reachable
from cutegen_lab.templates.emit.repeats import Repeats
from cutegen_lab.templates.emit.simplify import Simplify
from cutegen_lab.templates.emit.tidy import tidy

_MOST_ROUNDS = 12
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
    module = with_constants(module, values)
    entries = {"launch", "workspace", *(("constraints",) if rules else ())}
    module = _folded(module, facts, entries, numbers=False)  # values for which a caller has a name keep it
    module = inlined(module, probe.module)
    module = _folded(module, facts, entries, numbers=True)
    short = with_constants_first(module).visit(Repeats())
    for counted in (loads, bindings):  # metadata of trees that are no longer needed
        counted.cache_clear()
    assert isinstance(short, cst.Module)
    return tidy(short).code


def _folded(module: cst.Module, facts: Facts, entries: Collection[str], numbers: bool) -> cst.Module:
    """Applies all passes until nothing changes."""
    for _ in range(_MOST_ROUNDS):
        before = module
        module = reachable(module, entries)
        constants = _constants(module)
        simpler = module.visit(Simplify(constants, _pure(module)))
        assert isinstance(simpler, cst.Module)
        module = without_constant_parameters(simpler, constants, facts.arguments, numbers)
        if module.code == before.code:
            break
    return module


class _Observed(Branches):
    """Folds observed values."""

    def __init__(self, facts: Facts, module_functions: set[str], constants: set[str]) -> None:
        super().__init__()
        self._facts, self._functions, self._constants = facts, module_functions, constants
        self._carried: Counter[str] = Counter()
        self._known = set[str]()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Collects names that GPU loops bind (the DSL treats a name as loop-carried if it is bound before the loop
        too), and parameters with a single value."""
        self._known = {name for function, name in self._facts.arguments if function == node.name.value}
        self._known |= self._constants
        loops = [each for each in within(node) if isinstance(each, cst.For) and self._stays(each)]
        self._carried = sum((bindings(loop) for loop in loops), Counter())

    def _stays(self, loop: cst.For) -> bool:
        dynamic = isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "cutlass.range"
        found = self._facts.ranges.get(loop)
        return dynamic and loop not in self._facts.unseen and (found is None or len(range(*found)) > 1)

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
        if self._carried.keys() & bindings(original.body).keys():
            return None
        return range(*found) if found else None


def _constants(module: cst.Module) -> dict[str, Any]:
    """Names of the module that are assigned a literal."""
    found: dict[str, Any] = {}
    for statement in module.body:
        if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Assign):
            names = names_of(statement.body[0].targets[0].target)
            value = evaluate(statement.body[0].value, found)
            if len(names) == 1 and value is not UNKNOWN:
                found[names[0]] = value
    return found


def _pure(module: cst.Module) -> set[str]:
    """Functions that only compute with shapes: not compiled, and without method calls."""
    found = set[str]()
    for name, function in functions(module).items():
        calls = called(function)
        if not function.decorators and "" not in calls and not any(call.startswith("cute.") for call in calls):
            found.add(name)
    return found
