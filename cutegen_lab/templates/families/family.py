"""The interface of a kernel family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.frontend.expr import Graph


def _unknown(graph: Graph, workload: Workload, config: Config) -> float | None:
    return None


def _as_memory(graph: Graph, workload: Workload) -> float:
    return 1.0


def _as_it_is(graph: Graph, config: Config) -> Config:
    return config


@dataclass(frozen=True, eq=False)
class Family:
    """One kernel family: the ``FAMILY`` of its module or package (``mma``: one for each GPU)."""

    name: str
    """The name in reports and specs."""

    domains: Mapping[str, Sequence[Scalar]]
    """Values of each parameter that a search may try."""

    knobs: Mapping[tuple[str, int], str]
    """The reason to change a parameter, by name and direction (+1, -1)."""

    matches: Callable[[Graph], bool]
    """Whether the family can compute this graph."""

    default_config: Callable[[Graph, Workload], Config]
    """The config to start from; feasible if any of the configs that it chooses from is."""

    why_not: Callable[[Graph, Config], str]
    """The limit that a config exceeds, with the numbers compared; empty if the config is feasible. Calls the kernel's
    limits."""

    write: Callable[[Problem, Graph, Config], str]
    """The module's text, with the config as defaults. Raises ProviderError."""

    estimate_us: Callable[[Graph, Workload, Config], float | None] = _unknown
    """Estimated time of a config on an H200 in microseconds; None if there is no formula for it."""

    slowness: Callable[[Graph, Workload], float] = _as_memory
    """The kernel's time divided by the time that its memory traffic takes on a GPU: more than 1 if it leaves SMs idle,
    infinite if several kernels are always faster."""

    windows: bool = False
    """Whether the family reads windows of an input (``Graph.pools``). Only such families are considered for a graph
    with windows."""

    settled: Callable[[Graph, Config], Config] = _as_it_is
    """The config that runs: parameters that are upper bounds (``stages``) are reduced to the largest value that
    fits."""
