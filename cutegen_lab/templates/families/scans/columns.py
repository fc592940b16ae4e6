"""Scans along a dimension that is not the last: threads lie along the contiguous columns and go down them in steps.

In each step, each slice of a block takes ``loads`` consecutive rows. Slices combine their results in shared memory, in
a double buffer, so that one barrier per step is enough. Registers hold the prefix.
"""

from __future__ import annotations

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.emit.module import call, constraints, text_of_tuple
from cutegen_lab.templates.families.column_kernel import ColumnKernel
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.scans.rows import scans_alone
from cutegen_lab.templates.families.scans.scanning import Scanning
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.frontend.names import variable
from cutegen_lab.templates.kernels.limits import column_scan as limits

NAME = "column scan"
DOMAINS = {
    "vec": (1, 2, 4, 8),
    "threads": (16, 32, 64, 128, 256),
    "slices": (1, 2, 4, 8, 16, 32),
    "loads": (1, 2, 4, 8, 16),
}
KNOBS = {
    ("loads", 1): "Twice the independent loads in flight per thread, and half as many barriers.",
    ("slices", 1): "Twice as many threads share a column: more loads in flight if there are few columns.",
    ("threads", -1): "Narrower blocks: more of them for the same columns.",
    ("slices", -1): "Fewer partial results to combine before each thread's rows.",
    ("vec", 1): "Half as many memory instructions for the same bytes.",
    ("threads", 1): "Wider blocks: longer contiguous reads.",
    ("vec", -1): "Twice as many threads for the same columns.",
    ("loads", -1): "Fewer registers per thread: more warps fit on an SM.",
}


def matches(graph: Graph) -> bool:
    """Whether the graph has only scans of elementwise values, along one dimension before the last."""
    if not scans_alone(graph) or len(graph.reduced) != 1 or graph.reduced[0] == len(graph.space) - 1:
        return False
    return all(load.dims[-1] is not None or not graph.padding(load) for _, load in graph.loads())


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors, half a warp of them along the columns; 32 values in flight per thread."""
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    vec = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    return {"vec": vec, "threads": 16, "slices": 16, "loads": min(32 // vec, DOMAINS["loads"][-1])}


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` exceeds; empty if it is feasible."""
    return str(limits.why_not(config))


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _ColumnScans(problem, graph, config).text()


class _ColumnScans(Scanning, ColumnKernel):
    """Writes the module of scans down columns of ``n`` elements. Views have the shape (width, columns, n)."""

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        reserved = "n inner outer columns width threads slices loads before after"
        super().__init__(problem, graph, config, reserved)

    def text(self) -> str:
        sentences = (
            "A block scans its columns in steps: threads scan their rows, slices combine their results in shared "
            "memory, and the prefix is carried from one step to the next. Every element is read once and every result "
            "written once."
        )
        host, functions = constraints(""), self.functions(self.views.loaded)
        return self.bundled("column_scan", NAME, sentences, DOMAINS, host, [*functions, self._launch()])

    def _launch(self) -> list[str]:
        given = [
            text_of_tuple(variable("g", name) for name in self.views.loaded),
            text_of_tuple(variable("g", name) for name in self.outputs),
            "before", "after", self.ops, text_of_tuple(self.sizes), self.paddings(self.views.loaded),
            str(self.reverse), "threads", "slices", "loads",
        ]  # fmt: skip
        return [*self.launch_head(), *self.size_and_view_lines(), *call("scan_columns", [*given, "stream"], 4)]


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write)
