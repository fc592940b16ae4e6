"""Renames tensors whose names are also identifiers in kernel texts, such as ``row``, ``n``, ``stream``, ``vec``,
``range``."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.syntax import parse

RESERVED = frozenset({"cuda", "cute", "cutlass", "launch", "stream", "workload", "_"})  # names that any kernel uses
# First of the characters for placeholder names: texts do not contain these. A placeholder is as long as the name that
# it replaces, since line breaks depend on the length.
_NEUTRAL = 0x4E00
_PREFIXES = "gmrs"  # prefixes of tensor names in kernels


def well_named(problem: Problem, write: Callable[[Problem], str]) -> Problem:
    """``problem`` with other names for tensors whose names the text of ``write`` also uses for something else. Kernels
    take tensors by position, so names are arbitrary."""
    names = _names(problem)
    neutral = [chr(_NEUTRAL + number) * len(name) for number, name in enumerate(names)]
    alone = _functions(write(_with_names(problem, neutral)))
    beside = _functions(write(problem))
    clashing = {
        name
        for name, other in zip(names, neutral, strict=True)
        if any(count[other] and count[other] != beside[function][name] for function, count in alone.items())
    }
    return well_named(apart(problem, clashing), write) if clashing else problem


def apart(problem: Problem, used: Collection[str] = RESERVED) -> Problem:
    """``problem`` with a suffix added to tensor names that are in ``used`` or equal another tensor's name up to the
    case of the first letter: ``x`` and ``X`` would both become ``gX``."""
    names = list[str]()
    made = _derived(_names(problem))
    for name in _names(problem):
        while name in used or name in made or variable("g", name) in _derived(names):
            name = name + "_" if not name.endswith("_") else f"{name.rstrip('_')}_t"
        names.append(name)
    return _with_names(problem, names)


def clashes(name: str, others: Collection[str]) -> bool:
    """Whether a tensor ``name`` and tensors ``others`` would have equal names in kernels."""
    return name in {*others, *_derived(others)} or not _derived([name]).isdisjoint({*others, *_derived(others)})


def _derived(names: Collection[str]) -> set[str]:
    """Names of variables that kernels derive from tensor names."""
    return {variable(prefix, name) for prefix in _PREFIXES for name in names}


def variable(prefix: str, name: str) -> str:
    """Variable name in the style of CUTLASS: ``m`` whole tensor, ``g`` this block's part, ``r`` registers (``rX``)."""
    return prefix + name[:1].upper() + name[1:]


def _names(problem: Problem) -> list[str]:
    return [tensor.name for tensor in problem.workload.tensors]


def _with_names(problem: Problem, names: Sequence[str]) -> Problem:
    def within(workload: Workload) -> Workload:
        named = [replace(t, name=n) for t, n in zip(workload.tensors, names, strict=True)]
        count = len(workload.inputs)
        return replace(workload, inputs=tuple(named[:count]), outputs=tuple(named[count:]))

    if names == _names(problem):
        return problem
    workloads, checked = (tuple(map(within, some)) for some in (problem.workloads, problem.check_workloads))
    return replace(problem, workloads=workloads, check_workloads=checked)


def _functions(text: str) -> dict[str, Counter[str]]:
    """Number of occurrences of each name in each function, by function name."""
    return {
        function.name: Counter(
            node.id if isinstance(node, ast.Name) else node.arg
            for node in ast.walk(function)
            if isinstance(node, ast.Name | ast.arg)
        )
        for function in parse(text).body
        if isinstance(function, ast.FunctionDef)
    }
