"""Compiles a spec: selects the template and its config, and reports wrong settings before compilation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cutegen_lab.core.candidate import Config, Scalar, nearest_legal
from cutegen_lab.core.errors import InputError, ProviderError
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import GPUS, target_gpu
from cutegen_lab.cutespec.align import vector_width
from cutegen_lab.cutespec.form import Option, Spec, Step
from cutegen_lab.cutespec.parse import parse
from cutegen_lab.cutespec.reference import check_tensors, problem_of, reference
from cutegen_lab.templates.frontend.reader import Programs
from cutegen_lab.templates.pipeline import Asked, Pipeline, StepRefused, pipeline_of
from cutegen_lab.templates.recognise import single_for, template_for
from cutegen_lab.templates.template import Single, Template

# Statements that set several parameters by position: the first list whose names the template has is used.
_POSITIONAL: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "tile": (("tile_m", "tile_n", "tile_k"),),
    "cluster": (("cluster_m", "cluster_n"),),
    "split": (("split_k",), ("cluster_k",)),
}
_STATEMENTS = (*_POSITIONAL, "schedule", "stages")  # names of statements, which are not misspelt parameters
_AT_LINE = re.compile(r" at line (\d+): .*$")
_WHOLE = "main"  # step name of a spec without steps, which may take several kernels
Settings = dict[str, tuple[Scalar, Option]]
"""Parameters that a step sets → (value, the option that sets it)."""


@dataclass(frozen=True)
class Kernel:
    """``source``: a candidate with ``config`` as its defaults. ``chosen``: the parameters that the template chose."""

    problem: Problem
    template: Template
    source: str
    config: Config
    chosen: tuple[str, ...]
    arch: str

    @property
    def family(self) -> str:
        return self.template.name


def compile_text(text: str) -> Kernel:
    """Compiles a spec. Raises SpecError."""
    return compile_spec(parse(text))


def compile_for(problem: Problem, arch: str, text: str) -> Kernel:
    """Compiles a spec as an answer to ``problem``: it must have the same tensors, and its kernel serves every workload
    of the problem. Raises SpecError."""
    spec = parse(text)
    if spec.arch != arch:
        raise spec.place.error(f"the spec is for {spec.arch}, not for {arch}", f"Write `for {arch}`.")
    mine = problem_of(spec)
    check_tensors(spec, mine.workload, problem.workload)
    if spec.tf32 and not problem.tf32:
        raise spec.place.error("the spec is in tf32, which the problem does not allow", "Leave out `in tf32`.")
    asked = replace(problem, source=mine.source, kind="reference", inputs_text=mine.inputs_text, tf32=spec.tf32)
    return compile_spec(spec, asked)


def compile_spec(spec: Spec, problem: Problem | None = None) -> Kernel:
    """Compiles a parsed spec, for the workloads of ``problem`` if that is given. Raises SpecError."""
    try:
        target_gpu(spec.arch)
    except InputError as error:
        known = ", ".join(dict.fromkeys(gpu.arch for gpu in GPUS.values()))
        raise spec.place.error(error.message, f"Write `for` with one of: {known}.") from None
    problem = problem or problem_of(spec)
    template = _template(spec, problem)
    graphs = [template.graph] if isinstance(template, Single) else [s.kernel.graph for s in template.steps]
    if spec.tf32 and not any(dot.tf32 for graph in graphs for _, dot in graph.dots()):
        raise spec.place.error("the spec is in tf32, but has no matrix product of f32 tensors", "Leave out `in tf32`.")
    config, given = dict[str, Scalar](), set[str]()
    for prefix, step, part in _parts(spec, template):
        settings = _set(step, part)
        config |= {prefix + name: value for name, value in _config(settings, step, part, problem).items()}
        given |= {prefix + name for name in settings}
    config = dict(template.settled(config))
    chosen = tuple(name for name in config if name not in given)
    try:
        source = template.write(config)
    except ProviderError as error:
        raise spec.outputs[-1].place.error(error.message, "Write the kernel itself.") from error
    return Kernel(problem, template, source, config, chosen, spec.arch)


def _template(spec: Spec, problem: Problem) -> Single | Pipeline:
    """The template that serves ``spec``. Raises SpecError."""
    step = spec.steps[0]
    try:
        if len(spec.steps) > 1:
            _check_names(spec)
            return _steps(spec, problem)
        if step.name == _WHOLE:
            return template_for(problem, spec.arch)
        return single_for(Programs(problem, spec.arch))
    except ProviderError as error:
        if isinstance(error, StepRefused):
            step = next(s for s in spec.steps if s.name == error.step)
        found = _AT_LINE.search(error.message)  # the message refers to a line of generated PyTorch text
        place = reference(spec)[1].get(int(found[1])) if found else None
        action = "Write the kernel itself." if step.name == _WHOLE else "Split the step, by a tmp, or write the kernel."
        if isinstance(error, StepRefused) and error.action:
            action = error.action
        raise (place or step.values[-1].place).error(_AT_LINE.sub("", error.message), action) from error


def _steps(spec: Spec, problem: Problem) -> Pipeline:
    """A pipeline with one kernel for each step of the spec. Raises ProviderError."""
    source, _ = reference(spec, tmps=True)
    order = [value.name for value in (*spec.tmps, *spec.outputs)]
    asked = [
        Asked(step.name, tuple(order.index(v.name) for v in step.values if v.kind != "let")) for step in spec.steps
    ]
    return pipeline_of(Programs(replace(problem, source=source), spec.arch), asked, len(spec.tmps))


def _check_names(spec: Spec) -> None:
    seen = dict[str, Step]()
    for step in spec.steps:
        if all(value.kind == "let" for value in step.values):
            raise step.place.error(f"the step {step.name} has no result", "Write a tmp or an out in it.")
        for name in seen:
            if name == step.name or f"{name}_".startswith(f"{step.name}_") or f"{step.name}_".startswith(f"{name}_"):
                raise step.place.error(
                    f"the names of the steps {name} and {step.name} are too alike",
                    "They are prefixes of their kernels' parameters: choose other names.",
                )
        seen[step.name] = step


def _parts(spec: Spec, template: Template) -> Iterator[tuple[str, Step, Template]]:
    """Each step with its template and the prefix of its parameters."""
    if len(spec.steps) == 1 or not isinstance(template, Pipeline):
        yield "", spec.steps[0], template
        return
    for step, made in zip(spec.steps, template.steps, strict=True):
        yield f"{made.name}_", step, made.kernel


def _set(step: Step, template: Template) -> Settings:
    """Parameters that ``step`` sets. Raises SpecError."""
    found: Settings = {}
    for option in step.options:
        for name, value in _meant(option, template):
            if name in found:
                raise option.place.error(
                    f"{name} is set twice", f"It is first set on line {found[name][1].place.line}."
                )
            found[name] = (_legal(name, value, option, template), option)
    return found


def _meant(option: Option, template: Template) -> list[tuple[str, Scalar]]:
    """Parameters of ``template`` that ``option`` sets, with their values."""
    if option.name == "align":
        width = vector_width(option, template)
        return [("vec", width)] if "vec" in template.domains else []
    return list(zip(_names(option, template), option.values, strict=True))


def _names(option: Option, template: Template) -> tuple[str, ...]:
    """Parameters of ``template`` that ``option`` sets."""
    candidates = _POSITIONAL.get(option.name, ((option.name,),))
    for names in candidates:
        if all(name in template.domains for name in names):
            if len(option.values) > len(names):
                raise option.place.error(f"{option.name} has {len(option.values)} sizes; it takes up to {len(names)}: "
                                         f"{', '.join(names)}")  # fmt: skip
            return names[: len(option.values)]
    if option.name == "cluster" and isinstance(template, Single) and target_gpu(template.arch).max_cluster == 1:
        raise option.place.error(f"{template.arch} has no clusters of blocks", "Leave the cluster out.")
    near = [name for name in template.domains if name.startswith(f"{option.name}_")]
    hint = f"Did you mean {near[0]!r}?" if near else ""
    if not near and option.name not in _STATEMENTS:
        hint = did_you_mean(option.name, template.domains)
    if isinstance(template, Pipeline) and option.name in _STATEMENTS:
        hint = "The spec takes several kernels: name each by a `step`, or write `with` and the parameter."
    has = f"{hint} The template has: {', '.join(template.domains)}.".strip()
    raise option.place.error(f"the template ({template.name}) has no {option.name}", has)


def _legal(name: str, value: Scalar, option: Option, template: Template) -> Scalar:
    domain = template.domains[name]
    if value in domain:
        return value
    words = ", ".join(map(str, domain))
    raise option.place.error(f"{name} is {value}; it may be {words}", nearest_legal(value, domain))


def _config(given: Settings, step: Step, template: Template, problem: Problem) -> Config:
    """The template's default config for the main workload, adapted to the parameters that ``step`` sets."""
    fixed = {name: value for name, (value, _) in given.items()}
    config = {**template.default_config(), **fixed}
    if template.feasible(config):
        return config
    for name in (n for n in config if n not in fixed):
        for value in _by_distance(config[name], template.domains[name]):
            if template.feasible({**config, name: value}):
                return {**config, name: value}
    if not given:
        shapes, why = problem.workload.describe(), template.why_not(config)
        raise step.values[0].place.error(f"no config of the template ({template.name}) serves {shapes}: {why}")
    return _refuse(given, template, config)


def _by_distance(value: Scalar, domain: Sequence[Scalar]) -> list[Scalar]:
    values = list(domain)
    at = values.index(value) if value in values else 0
    return sorted((v for v in values if v != value), key=lambda v: abs(values.index(v) - at))


def _refuse(given: Settings, template: Template, config: Config) -> Config:
    """Raises SpecError that names the setting to change, and its nearest legal value."""
    for name, (value, option) in reversed(list(given.items())):
        for other in _by_distance(value, template.domains[name]):
            if template.feasible({**config, name: other}):
                together = ", ".join(f"{n}={config[n]}" for n in given if n != name)
                raise option.place.error(
                    f"{name}={value}{' with ' + together if together else ''}: {template.why_not(config)}",
                    f"The nearest that fits is {name}={other}.",
                )
    option = next(iter(given.values()))[1]
    raise option.place.error(
        f"no block can have all these settings: {template.why_not(config)}", "Leave some of them to the template."
    )
