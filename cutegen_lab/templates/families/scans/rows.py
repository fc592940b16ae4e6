"""Scans along the last dimension. A block scans a row in steps and carries the prefix from one step to the next.

In each step, threads scan their own vectors, warps combine these with shuffles, and the warps of a row combine theirs
in shared memory. Because of a double buffer, one barrier per step is enough.
"""

from __future__ import annotations

import math

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.emit.module import call, constraints, text_of_tuple
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.rows.row_kernel import RowKernel
from cutegen_lab.templates.families.scans.scanning import Scanning
from cutegen_lab.templates.frontend.expr import Dot, FullReduce, Gather, Graph, Iota, Reduce, ReducedIota, Scan
from cutegen_lab.templates.frontend.names import variable
from cutegen_lab.templates.kernels.limits import row_scan as limits

NAME = "row scan"
DOMAINS = {
    "vec": (1, 2, 4, 8),
    "threads_per_row": (32, 64, 128, 256, 512, 1024),
    "rows_per_block": (1, 2, 4, 8, 16),
    "loads": (1, 2, 4, 8),
}
KNOBS = {
    ("loads", 1): "Twice the independent loads in flight per thread, and half as many barriers.",
    ("threads_per_row", 1): "Longer steps: fewer barriers per row.",
    ("rows_per_block", 1): "Larger blocks: half as many to start, and one barrier serves two rows.",
    ("threads_per_row", -1): "Barriers wait for fewer warps, and more blocks fit on an SM.",
    ("vec", 1): "Half as many memory instructions for the same bytes, and half as many shuffles.",
    ("loads", -1): "Fewer registers per thread: more warps fit on an SM.",
    ("rows_per_block", -1): "Smaller blocks: barriers wait for fewer warps and the last wave is finer.",
    ("vec", -1): "Narrower accesses: fewer registers per thread.",
}


def matches(graph: Graph) -> bool:
    """Whether the graph has only scans of elementwise values, along the last dimension."""
    return scans_alone(graph) and graph.reduced == (len(graph.space) - 1,)


def scans_alone(graph: Graph) -> bool:
    """Whether all scans have the same direction, none depends on another, and the graph has no reduction, product or
    index."""
    after: list[bool] = []
    for node in graph.nodes:
        inside = any(after[a] for a in node.args)
        if isinstance(node, Dot | ReducedIota | Gather | Iota | Reduce | FullReduce) or (
            isinstance(node, Scan) and inside
        ):
            return False
        after.append(inside or isinstance(node, Scan))
    return len({scan.reverse for _, scan in graph.scans()}) == 1


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors and about 32 bytes in flight per thread; a row takes one step if a block is large enough for
    it."""
    n = graph.space[-1]
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    vec = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    width = 1 if any(graph.padding(load) for _, load in graph.loads()) else math.gcd(n, vec)
    loads = min(max(32 // (width * itemsize), 1), DOMAINS["loads"][-1])
    most = [t for t in DOMAINS["threads_per_row"] if t // 32 * loads <= limits.SLOTS]
    threads = next((t for t in most if n // width <= loads * t), min(256, most[-1]))
    rows = math.prod(graph.space[:-1])
    per_block = max(128 // threads, 1)
    while per_block > 1 and per_block > rows:
        per_block //= 2
    return {"vec": vec, "threads_per_row": threads, "rows_per_block": per_block, "loads": loads}


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` exceeds; empty if it is feasible."""
    return str(limits.why_not(config))


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _RowScans(problem, graph, config).text()


class _RowScans(Scanning, RowKernel):
    """Writes the module of scans along rows of ``n`` elements. Views have the shape (width, n / width, rows), or (rows)
    for one value per row."""

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        super().__init__(problem, graph, config, "n rows width before after")
        along = {name: self.along(self.views.by_name[name]) for name in self.views.loaded}
        self.vectors = [name for name in along if along[name]]  # views of vectors of a row
        self.row_values = [name for name in along if not along[name]]  # views of one value per row

    def text(self) -> str:
        sentences = (
            "A block scans its rows in steps: threads, then warps, then all warps of a row combine their results, and "
            "the prefix is carried from one step to the next. Every element is read once and every result written once."
        )
        host, functions = constraints(""), self.functions([*self.vectors, *self.row_values])
        return self.bundled("row_scan", NAME, sentences, DOMAINS, host, [*functions, self._launch()])

    def _launch(self) -> list[str]:
        given = [
            text_of_tuple(variable("g", name) for name in self.vectors),
            text_of_tuple(variable("g", name) for name in self.row_values),
            text_of_tuple(variable("g", name) for name in self.outputs),
            "before", "after", self.ops, text_of_tuple(self.sizes), self.paddings(self.vectors),
            str(self.reverse), "threads_per_row", "rows_per_block", "loads",
        ]  # fmt: skip
        return [*self.launch_head(), *self.size_and_view_lines(), *call("scan_rows", [*given, "stream"], 4)]


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write)
