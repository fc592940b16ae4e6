"""The part of the corpus that the templates write: every family, three dtypes, tails, primes, one row, odd configs."""

from __future__ import annotations

from dataclasses import dataclass, field

from cutegen_lab.core.candidate import Config
from cutegen_lab.problems import read_text
from cutegen_lab.templates.reader import read
from cutegen_lab.templates.registry import family_for


@dataclass(frozen=True)
class Case:
    """``config`` holds the parameters that differ from the family's defaults."""

    problem: str
    inputs: str
    config: Config = field(default_factory=dict)


def _case(expression: str, inputs: str, **config: int) -> Case:
    arguments = ", ".join(part.split(":")[0].strip() for part in inputs.split("], "))
    return Case(f"def reference({arguments}):\n    return {expression}\n", inputs, config)


CASES = {
    "generated_softmax": _case("torch.softmax(x, -1)", "x: bf16[64,1000]"),
}


def write(name: str, case: Case) -> str:
    """The kernel's text."""
    problem = read_text(case.problem, name=name, inputs_text=case.inputs)
    graph = read(problem)
    family = family_for(graph)
    config = {**family.default_config(graph, problem.workload), **case.config}
    assert family.feasible(graph, config), f"{name}: {config} is not feasible"
    return family.write(problem, graph, config)
