"""Reductions over dimensions before the last: threads lie along the inner dimensions, which stay contiguous.

Each thread owns ``vec`` adjacent columns and loops over the reduced dimension, which it shares with ``slices - 1``
other threads. Partial results are combined in shared memory, and those of a cluster's ``cluster_m`` blocks in
distributed shared memory. Each reduction is one pass; a last pass writes results that vary along the column. A column
is read once per pass (from L2 if it fits).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.emit.module import call, constraints, signature, text_of_tuple
from cutegen_lab.templates.families.column_kernel import ColumnKernel
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.kernel_module import of_vectors
from cutegen_lab.templates.families.rows.config import partly_written
from cutegen_lab.templates.frontend.expr import Dot, Extent, FullReduce, Gather, Graph, Iota, Reduce, ReducedIota, Scan
from cutegen_lab.templates.frontend.names import variable
from cutegen_lab.templates.kernels.limits import column_reduction as limits

NAME = "column reduction"
DOMAINS = {
    "vec": (1, 2, 4, 8),
    "threads": (16, 32, 64, 128, 256),
    "slices": (1, 2, 4, 8, 16, 32),
    "cluster_m": (1, 2, 4, 8),
    "loads": (1, 2, 4, 8),
}
KNOBS = {
    ("slices", 1): "Twice as many threads share a column: more loads in flight if there are few columns.",
    ("cluster_m", 1): "Twice as many blocks share a column: more loads in flight if there are few columns.",
    ("loads", 1): "Twice the independent loads in flight per thread.",
    ("threads", -1): "Narrower blocks: more of them for the same columns.",
    ("slices", -1): "Fewer partial results to combine in shared memory.",
    ("cluster_m", -1): "Fewer partial results to combine in distributed shared memory.",
    ("vec", 1): "Half as many memory instructions for the same bytes.",
    ("threads", 1): "Wider blocks: longer contiguous reads.",
    ("vec", -1): "Twice as many threads for the same columns.",
    ("loads", -1): "Fewer registers per thread.",
}
_FULL = 1 << 17  # threads with which an H200 reads at its full rate
_ACROSS = 16  # minimum number of threads along the columns
_BLOCK = 256  # minimum number of threads in a block
_ALMOST = 1.4  # a cluster of 2 is faster if a column can use this many times the maximum of ``slices``
_ROWS = 16  # minimum number of rows per thread: two batches of loads
_LONG = 128  # rows per thread: bf16[65536, 8192] takes 247 µs with 16 slices, 8 blocks, 2 loads; 255 with 32, 4, 4


def matches(graph: Graph) -> bool:
    """Whether the graph reduces dimensions before the last, without products, gathers, iotas, scans or full
    reductions."""
    rank = len(graph.space)
    if not graph.reduced or graph.reduced[-1] == rank - 1 or partly_written(graph):
        return False
    return not any(isinstance(node, Dot | Gather | Iota | Scan | FullReduce) for node in graph.nodes)


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors and half a warp across; then slices, and blocks in clusters, until the GPU is full. If threads
    would have few rows or the GPU is not full: fewer rows per thread, then narrower vectors. Small blocks get more
    columns. Long columns get larger clusters of smaller blocks, and fewer loads in flight."""
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    inner = math.prod(graph.space[graph.reduced[-1] + 1 :])
    walked = math.prod(graph.space[d] for d in graph.reduced)
    outer = math.prod(graph.space) // max(inner * walked, 1)
    widest = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    config = {}
    for vec, least_rows in ((widest, _ROWS), (widest, _ROWS // 2), (max(widest // 2, 1), _ROWS // 2)):
        across = max(-(-inner // (vec * _ACROSS)) * outer, 1) * _ACROSS
        shared = max(min(_FULL // across, walked // least_rows), 1)  # threads per column
        slices = max(s for s in DOMAINS["slices"] if s <= shared)
        most = DOMAINS["cluster_m"][-1] if itemsize < 4 else DOMAINS["cluster_m"][-2]
        cluster_m = max(c for c in DOMAINS["cluster_m"] if slices * c <= shared and c <= most)
        if slices == DOMAINS["slices"][-1] and slices * _ALMOST <= shared < 2 * slices:
            cluster_m = 2  # 172 blocks take 17% longer than 344 for the sums of an f32[12193, 11008]
        threads = next(t for t in DOMAINS["threads"] if t * slices >= _BLOCK or t * vec >= inner or t >= 128)
        few = vec < 8 or cluster_m < 4 or walked <= _ROWS * slices * cluster_m  # few registers, few blocks or few rows
        loads = 8 if few else 4
        if not few and walked >= _LONG * slices * cluster_m:
            slices, cluster_m, loads = slices * cluster_m // most, most, 2
        config = {"vec": vec, "threads": threads, "slices": slices, "cluster_m": cluster_m, "loads": loads}
        if across * slices * cluster_m >= _FULL // 2:
            break
    return config


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` exceeds; empty if it is feasible."""
    return str(limits.why_not(config))


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _Columns(problem, graph, config).text()


class _Columns(ColumnKernel):
    """Writes the module of column reductions. Views have the shape (width, columns, n), or (columns, n) for a tensor
    that is broadcast along the last dimension. Sums are fp32."""

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        super().__init__(problem, graph, config, "n inner outer columns width extent position outs results")
        depths = graph.depths()
        reductions = [i for i, node in enumerate(graph.nodes) if isinstance(node, Reduce)]
        self.names = {i: self.reduction_name(i) for i in reductions}
        self.order = sorted(reductions, key=lambda i: (depths[i], i))
        self.counted = any(isinstance(node, Extent | ReducedIota) for node in graph.nodes)
        every = list(zip(self.outputs, graph.outputs, strict=True))
        self.walked = {name: output.node for name, output in every if output.dims[self.axis] is not None}
        self.single = {name: output.node for name, output in every if output.dims[self.axis] is None}
        self._local = dict[int, str]()  # names of values that several functions compute, by node

    def text(self) -> str:
        sentences = (
            "Threads lie along the contiguous columns; the slices of a block, and the blocks of a cluster, share the "
            "reduced dimension. The order of every sum is fixed, so results are the same at every call."
        )
        functions, walks = [], []
        for at, index in enumerate(self.order):
            node = self.graph.nodes[index]
            assert isinstance(node, Reduce)
            lines, function = self._function(f"for_{self.names[index]}", node.args, self.order[:at])
            functions.append(lines)
            walks.append(f"({function}, {of_vectors(node.op)})")
        calls = [text_of_tuple(walks)]
        for name, roots in (("outs", self.walked.values()), ("results", self.single.values())):
            lines, function = self._function(name, list(roots), self.order)
            functions += [lines] if roots else []
            calls.append(f"({function})" if roots else "None")
        return self.bundled(
            "column_reduction", NAME, sentences, DOMAINS, constraints(""), [*functions, self._launch(calls)]
        )

    def _function(self, name: str, roots: Sequence[int], reduced: Sequence[int]) -> tuple[list[str], str]:
        """(lines of a function that computes ``roots`` from the views of a row and the earlier reductions ``reduced``,
        the text ``name, (indices of its views)`` for the launch)."""
        env = {index: self.names[index] for index in reduced}
        needed = self.writer.pending(roots, env)
        views = {index: view.name for index, view in self.views.of_load.items() if index in needed}
        env |= views
        lines = self.writer.assignments(roots, env, self._local)
        values = [self.writer.expression(root, env)[0] for root in roots]
        taken = list(dict.fromkeys(views.values()))
        counts = ["extent", "position"] if self.counted else []
        head = signature(name, [*taken, *(self.names[index] for index in reduced), *counts, *self.sizes])
        last = values[0] if name.startswith("for_") else text_of_tuple(values)
        numbers = text_of_tuple(str(self.views.loaded.index(view)) for view in taken)
        return [*head, *(f"    {line}" for line in [*lines, f"return {last}"])], f"{name}, {numbers}"

    def _launch(self, calls: Sequence[str]) -> list[str]:
        given = [
            text_of_tuple(variable("g", name) for name in self.views.loaded),
            text_of_tuple(variable("g", name) for name in self.walked),
            text_of_tuple(variable("g", name) for name in self.single),
            *calls, str(self.counted), text_of_tuple(self.sizes), "threads", "slices", "cluster_m", "loads",
        ]  # fmt: skip
        return [*self.launch_head(), *self.size_and_view_lines(), *call("reduce_columns", [*given, "stream"], 4)]


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write)
