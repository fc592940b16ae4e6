"""From a problem to the template that serves it: one family's kernel, or several kernels one after another."""

from __future__ import annotations

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.pipeline import pipeline_for
from cutegen_lab.templates.reader import Programs, read, read_region
from cutegen_lab.templates.registry import family_for
from cutegen_lab.templates.template import Single, Template


def template_for(problem: Problem) -> Template:
    """Raises ProviderError naming the operation that no family serves."""
    programs = Programs(problem)
    try:
        return single_for(problem, programs)
    except ProviderError as error:
        return pipeline_for(programs, error)


def single_for(problem: Problem, programs: Programs | None = None) -> Single:
    """One kernel for everything. Raises ProviderError where no family has it."""
    programs = programs or Programs(problem)
    graph = read(problem, programs)
    family = family_for(graph)
    others = [programs.of(workload.name) for workload in problem.workloads[1:]]
    graphs = [graph, *(read_region(program, program.whole(), program.workload) for program in others)]
    return Single(problem, tuple(graphs), family)
