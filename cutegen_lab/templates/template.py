"""A template for one problem: kernel text with parameters, their domains and limits. What everyone above asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.expr import Graph
from cutegen_lab.templates.registry import Family


class Template(Protocol):
    """``knobs`` gives, for a parameter and a direction (+1, −1), why one would move it."""

    @property
    def name(self) -> str: ...

    @property
    def domains(self) -> Mapping[str, Sequence[Scalar]]: ...

    @property
    def knobs(self) -> Mapping[tuple[str, int], str]: ...

    def default_config(self) -> Config:
        """A sound one; where there is such a one, feasible for every workload of the problem."""
        ...

    def feasible(self, config: Config) -> bool:
        """For every workload of the problem, derived ones aside: what ``constraints`` say, without running the text."""
        ...

    def why_not(self, config: Config) -> str:
        """The limit that a config is beyond, with its figures; empty where it is feasible."""
        ...

    def write(self, config: Config) -> str:
        """The module's text with ``config`` as defaults. Raises ProviderError."""
        ...


@dataclass(frozen=True)
class Single:
    """One family's kernel for a whole problem. ``graphs`` are those of its workloads, the main one first."""

    problem: Problem
    graphs: tuple[Graph, ...]
    family: Family

    @property
    def graph(self) -> Graph:
        return self.graphs[0]

    @property
    def name(self) -> str:
        return self.family.NAME

    @property
    def domains(self) -> Mapping[str, Sequence[Scalar]]:
        return self.family.DOMAINS

    @property
    def knobs(self) -> Mapping[tuple[str, int], str]:
        return self.family.KNOBS

    def default_config(self) -> Config:
        pairs = zip(self.graphs, self.problem.workloads, strict=True)
        configs = [self.family.default_config(graph, workload) for graph, workload in pairs]
        return next(filter(self.feasible, configs), configs[0])

    def feasible(self, config: Config) -> bool:
        return all(self.family.feasible(graph, config) for graph in self.graphs)

    def why_not(self, config: Config) -> str:
        return next(filter(None, (self.family.why_not(graph, config) for graph in self.graphs)), "")

    def write(self, config: Config) -> str:
        return self.family.write(self.problem, self.graph, config)
