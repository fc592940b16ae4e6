"""A template for one problem: kernel text with parameters, their domains and limits. The interface for all callers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.frontend.names import well_named
from cutegen_lab.templates.registry import pays


class Template(Protocol):
    """A template for one problem. ``knobs``: the reason to change a parameter, by name and direction (+1, −1)."""

    @property
    def name(self) -> str: ...

    @property
    def domains(self) -> Mapping[str, Sequence[Scalar]]: ...

    @property
    def knobs(self) -> Mapping[tuple[str, int], str]: ...

    def default_config(self) -> Config:
        """The config to start from; feasible for every workload of the problem if possible."""
        ...

    def feasible(self, config: Config) -> bool:
        """Whether ``constraints`` accepts the config for every workload except derived ones, without running the
        text."""
        ...

    def why_not(self, config: Config) -> str:
        """The limit that a config exceeds, with its figures; empty if it is feasible."""
        ...

    def estimate_us(self, config: Config) -> float | None:
        """Estimated time of the main workload in microseconds; None if there is no formula for it."""
        ...

    def settled(self, config: Config) -> Config:
        """The config that runs: parameters that are upper bounds are reduced to what fits."""
        ...

    def write(self, config: Config) -> str:
        """The module's text with ``config`` as defaults. Raises ProviderError."""
        ...


_CLUSTERS = ("cluster_m", "cluster_n", "cluster_k")


@dataclass(frozen=True)
class Single:
    """One family's kernel for a problem on ``arch``. ``graphs``: one for each workload, the main one first."""

    problem: Problem
    graphs: tuple[Graph, ...]
    family: Family
    arch: str

    @property
    def graph(self) -> Graph:
        return self.graphs[0]

    @property
    def name(self) -> str:
        return self.family.name

    @property
    def domains(self) -> Mapping[str, Sequence[Scalar]]:
        if self._clusters:
            return self.family.domains
        return {name: (1,) if name in _CLUSTERS else values for name, values in self.family.domains.items()}

    @property
    def knobs(self) -> Mapping[tuple[str, int], str]:
        return self.family.knobs

    @property
    def pays(self) -> bool:
        """Whether one kernel is faster than several kernels for the main workload."""
        return pays(self.family, self.graph, self.problem.workload)

    def default_config(self) -> Config:
        pairs = zip(self.graphs, self.problem.workloads, strict=True)
        configs = [self.family.default_config(graph, workload) for graph, workload in pairs]
        if not self._clusters:
            configs = [alone for config in configs for alone in self._without_clusters(config)]
        return next(filter(self.feasible, configs), configs[0])

    def feasible(self, config: Config) -> bool:
        return not self.why_not(config)

    def why_not(self, config: Config) -> str:
        sizes = {name: int(config[name]) for name in _CLUSTERS if name in config and not self._clusters}
        for name, size in sizes.items():
            if size > 1:
                return f"{name} of {size}, but {self.arch} has no clusters of blocks"
        return next(filter(None, (self.family.why_not(graph, config) for graph in self.graphs)), "")

    def estimate_us(self, config: Config) -> float | None:
        return self.family.estimate_us(self.graph, self.problem.workload, config)

    def settled(self, config: Config) -> Config:
        return self.family.settled(self.graph, config)

    @property
    def _clusters(self) -> bool:
        return target_gpu(self.arch).max_cluster > 1

    def _without_clusters(self, config: Config) -> Iterator[Config]:
        """``config`` without clusters, then with each number of loads in flight, largest first."""
        single = {name: 1 if name in _CLUSTERS else value for name, value in config.items()}
        yield single
        for loads in reversed(self.family.domains.get("loads", ())):
            yield {**single, "loads": loads}

    def write(self, config: Config) -> str:
        return self.family.write(self._well_named, self.graph, config)

    @cached_property
    def _well_named(self) -> Problem:
        return well_named(self.problem, lambda problem: self.family.write(problem, self.graph, self.default_config()))
