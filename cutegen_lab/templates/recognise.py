"""Finds the template that serves a problem: one family's kernel, or several kernels in sequence."""

from __future__ import annotations

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.frontend.reader import Programs, read, read_region
from cutegen_lab.templates.pipeline import Pipeline, pipeline_for
from cutegen_lab.templates.registry import family_for
from cutegen_lab.templates.template import Single


def template_for(problem: Problem, arch: str) -> Single | Pipeline:
    """The template for ``problem``. Raises ProviderError naming the operation that no family serves on ``arch``."""
    programs = Programs(problem, arch)
    try:
        single = single_for(programs)
    except ProviderError as error:
        return pipeline_for(programs, error)
    if single.pays:
        return single
    try:
        return pipeline_for(programs, ProviderError("several kernels are faster than one"))
    except ProviderError:
        return single


def single_for(programs: Programs) -> Single:
    """A template with a single kernel. Raises ProviderError if no family serves the whole reference."""
    problem = programs.problem
    graph = read(problem, programs)
    family = family_for(graph, programs.arch)
    others = [programs.of(workload.name) for workload in problem.workloads[1:]]
    graphs = [graph, *(read_region(program, program.whole(), program.workload) for program in others)]
    return Single(problem, tuple(graphs), family, programs.arch)
