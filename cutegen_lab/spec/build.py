"""A spec to a kernel: the template that serves it, its config, and what is wrong with a setting before compiling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.core.errors import InputError, ProviderError
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.spec.form import Option, Place, Spec, Step
from cutegen_lab.spec.parse import parse
from cutegen_lab.spec.reference import problem_of
from cutegen_lab.templates.expr import Graph
from cutegen_lab.templates.reader import read
from cutegen_lab.templates.registry import Family, family_for

# Statements that set several parameters of a template by position; the first list whose names it has is meant.
_POSITIONAL: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "tile": (("tile_m", "tile_n", "tile_k"),),
    "cluster": (("cluster_m", "cluster_n"),),
    "split": (("split_k",),),
}
_AT_LINE = re.compile(r" at line \d+: .*$")
Settings = dict[str, tuple[Scalar, Option]]
"""Parameters that a step sets, each with its value and where."""


@dataclass(frozen=True)
class Kernel:
    """``source`` is a whole candidate with ``config`` as its defaults; ``chosen`` are the parameters that the spec left
    to the template."""

    problem: Problem
    family: str
    source: str
    config: Config
    chosen: tuple[str, ...]
    arch: str


def compile_text(text: str) -> Kernel:
    """Raises SpecError."""
    return compile_spec(parse(text))


def compile_spec(spec: Spec) -> Kernel:
    """Raises SpecError."""
    try:
        target_gpu(spec.arch)
    except InputError as error:
        raise Place(1, 1).error(error.message, error.action) from None
    problem = problem_of(spec)
    if len(spec.steps) > 1:
        place = spec.steps[1].place
        raise place.error("several steps do not become one module yet", "Give each step a spec of its own.")
    step = spec.steps[0]
    try:
        graph = read(problem)
        family = family_for(graph)
    except ProviderError as error:
        message = _AT_LINE.sub("", error.message)  # of PyTorch's text, which the spec's author has not seen
        raise step.values[-1].place.error(message, "Split it, or write the kernel itself.") from error
    given = _set(step, family)
    config = _config(given, step, family, graph, problem)
    chosen = tuple(name for name in config if name not in given)
    return Kernel(problem, family.NAME, family.write(problem, graph, config), config, chosen, spec.arch)


def _set(step: Step, family: Family) -> Settings:
    """What ``step`` sets. Raises SpecError."""
    found: Settings = {}
    for option in step.options:
        for name, value in zip(_names(option, family), option.values, strict=True):
            if name in found:
                raise option.place.error(f"{name} is set twice", f"The first time at line {found[name][1].place.line}.")
            found[name] = (_legal(name, value, option, family), option)
    return found


def _names(option: Option, family: Family) -> tuple[str, ...]:
    """The parameters of ``family`` that ``option`` means."""
    candidates = _POSITIONAL.get(option.name, ((option.name,),))
    for names in candidates:
        if all(name in family.DOMAINS for name in names):
            if len(option.values) > len(names):
                raise option.place.error(f"{option.name} has {len(option.values)} sizes; there are {len(names)}: "
                                         f"{', '.join(names)}")  # fmt: skip
            return names[: len(option.values)]
    near = difflib.get_close_matches(option.name, family.DOMAINS, 1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise option.place.error(
        f"the template ({family.NAME}) has no {option.name}", f"{hint}It has: {', '.join(family.DOMAINS)}."
    )


def _legal(name: str, value: Scalar, option: Option, family: Family) -> Scalar:
    domain = family.DOMAINS[name]
    if value in domain:
        return value
    words = ", ".join(map(str, domain))
    if isinstance(value, int) and all(isinstance(v, int) for v in domain):
        nearest = min(domain, key=lambda v: (abs(int(v) - value), -int(v)))
        raise option.place.error(f"{name} is {value}; it may be {words}", f"The nearest is {nearest}.")
    near = difflib.get_close_matches(str(value), [str(v) for v in domain], 1)
    raise option.place.error(f"{name} is {value}; it may be {words}", f"Did you mean {near[0]!r}?" if near else "")


def _config(given: Settings, step: Step, family: Family, graph: Graph, problem: Problem) -> Config:
    """The template's default for the main workload under what ``step`` sets; what it leaves open gives way."""
    fixed = {name: value for name, (value, _) in given.items()}
    config = {**family.default_config(graph, problem.workload), **fixed}
    if family.feasible(graph, config):
        return config
    for name in (n for n in config if n not in fixed):
        for value in _by_distance(config[name], family.DOMAINS[name]):
            if family.feasible(graph, {**config, name: value}):
                return {**config, name: value}
    if not given:
        shapes = problem.workload.describe()
        raise step.values[0].place.error(f"no config of the template ({family.NAME}) serves {shapes}")
    return _refuse(given, family, graph, config)


def _by_distance(value: Scalar, domain: Sequence[Scalar]) -> list[Scalar]:
    values = list(domain)
    at = values.index(value) if value in values else 0
    return sorted((v for v in values if v != value), key=lambda v: abs(values.index(v) - at))


def _refuse(given: Settings, family: Family, graph: Graph, config: Config) -> Config:
    """Names the setting that must give way, and to what."""
    for name, (value, option) in reversed(list(given.items())):
        for other in _by_distance(value, family.DOMAINS[name]):
            if family.feasible(graph, {**config, name: other}):
                together = ", ".join(f"{n}={config[n]}" for n in given if n != name)
                raise option.place.error(
                    f"{name}={value}{' with ' + together if together else ''} is beyond what a block has "
                    "(registers, shared memory or threads)",
                    f"The nearest that fits is {name}={other}.",
                )
    option = next(iter(given.values()))[1]
    raise option.place.error("these settings fit no block together", "Leave some of them to the template.")
