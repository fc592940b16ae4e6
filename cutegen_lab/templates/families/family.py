"""What a family of kernels is to everyone above."""

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
    """One kernel family. Each of its modules ends with its ``FAMILY``."""

    name: str
    """As reports and specs have it."""

    domains: Mapping[str, Sequence[Scalar]]
    """Values of each parameter that a search may take."""

    knobs: Mapping[tuple[str, int], str]
    """For a parameter and a direction (+1, -1), why one would move it."""

    matches: Callable[[Graph], bool]
    """Can it compute this graph?"""

    default_config: Callable[[Graph, Workload], Config]
    """The config to begin with; feasible where there is a feasible one of its kind."""

    why_not: Callable[[Graph, Config], str]
    """The limit that a config is beyond, with its figures; empty where it is feasible. The kernel's rules say it."""

    write: Callable[[Problem, Graph, Config], str]
    """The module's text, with the config as defaults."""

    estimate_us: Callable[[Graph, Workload, Config], float | None] = _unknown
    """Microseconds that a config takes about on an H200, by a formula; None where there is none for it."""

    slowness: Callable[[Graph, Workload], float] = _as_memory
    """How many times longer than the GPU's memory the kernel takes: 1 but where it leaves multiprocessors idle;
    infinite where several kernels are always faster."""

    windows: bool = False
    """Does it read windows of an input (``Graph.pools``)? Only such a family is asked about a graph that has one."""

    settled: Callable[[Graph, Config], Config] = _as_it_is
    """The config that runs, where a parameter is an upper bound, such as stages of which not all fit."""
