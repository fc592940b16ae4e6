"""Reductions over dimensions before the last: threads lie along the inner dimensions, which stay contiguous.

Each thread owns ``vec`` adjacent columns and, with ``slices - 1`` others, walks down the reduced dimension; the slices'
partial results meet in shared memory, and those of a cluster's ``cluster_m`` blocks in its distributed shared memory.
Every reduction is one pass, and a last pass writes what varies along it, so a column is read once a pass (from L2 where
it fits).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.emit.cute_text import number
from cutegen_lab.templates.emit.module import constraints
from cutegen_lab.templates.families.column_kernel import ColumnKernel
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.kernel_module import COMBINE, COMBINE_VECTORS
from cutegen_lab.templates.families.rows.config import partly_written
from cutegen_lab.templates.frontend.expr import (
    NEUTRAL,
    Dot,
    Graph,
    Index,
    Map,
    Output,
    Pick,
    Place,
    Reduce,
    Scan,
    Total,
)
from cutegen_lab.templates.frontend.names import variable
from cutegen_lab.templates.kernels.rules import column_reduction as rules

NAME = "column reduction"
DOMAINS = {
    "vec": (1, 2, 4, 8),
    "threads": (16, 32, 64, 128, 256),
    "slices": (1, 2, 4, 8, 16, 32),
    "cluster_m": (1, 2, 4, 8),
    "loads": (1, 2, 4, 8),
}
KNOBS = {
    ("slices", 1): "Twice as many threads share a column: more loads in flight when there are few columns.",
    ("cluster_m", 1): "Twice as many blocks share a column: more loads in flight when there are few columns.",
    ("loads", 1): "Twice the independent loads in flight a thread.",
    ("threads", -1): "Narrower blocks: more of them for the same columns.",
    ("slices", -1): "Fewer partial results to meet in shared memory.",
    ("cluster_m", -1): "Fewer partial results to meet in distributed shared memory.",
    ("vec", 1): "Half as many memory instructions for the same bytes.",
    ("threads", 1): "Wider blocks: longer contiguous reads.",
    ("vec", -1): "Twice as many threads for the same columns.",
    ("loads", -1): "Fewer registers a thread.",
}
_FULL = 1 << 17  # threads that an H200 takes to read at its full rate
_ACROSS = 16  # of them next to each other, at least
_BLOCK = 256  # of them in a block, at least
_ALMOST = 1.4  # times as many threads as are in a block of most slices
_ROWS = 16  # of a thread: two batches of loads
_LONG = 128  # of a thread: sums of a bf16[65536, 8192] take 247 µs by 16 slices, 8 blocks, 2 loads; 255 by 32, 4 and 4
_BATCH = ("batch", "at", "[None, u]")  # where rows that are loaded at once go, and from where
_Loads = tuple[list[str], list[str], list[str]]  # lines: registers, copies into them, what is made of one row's


def matches(graph: Graph) -> bool:
    rank = len(graph.space)
    if not graph.reduced or graph.reduced[-1] == rank - 1 or partly_written(graph):
        return False
    return not any(isinstance(node, Dot | Pick | Place | Scan | Total) for node in graph.nodes)


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors and half a warp across; then slices, and blocks in clusters, until the GPU is full; where that
    would leave threads few rows or is not enough, fewer rows a thread, then narrower vectors; wider blocks if small;
    larger clusters of smaller blocks and fewer loads at once for long walks."""
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    inner = math.prod(graph.space[graph.reduced[-1] + 1 :])
    walked = math.prod(graph.space[d] for d in graph.reduced)
    outer = math.prod(graph.space) // max(inner * walked, 1)
    widest = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    config = {}
    for vec, least_rows in ((widest, _ROWS), (widest, _ROWS // 2), (max(widest // 2, 1), _ROWS // 2)):
        across = max(-(-inner // (vec * _ACROSS)) * outer, 1) * _ACROSS
        shared = max(min(_FULL // across, walked // least_rows), 1)  # by so many threads, a column
        slices = max(s for s in DOMAINS["slices"] if s <= shared)
        most = DOMAINS["cluster_m"][-1] if itemsize < 4 else DOMAINS["cluster_m"][-2]
        cluster_m = max(c for c in DOMAINS["cluster_m"] if slices * c <= shared and c <= most)
        if slices == DOMAINS["slices"][-1] and slices * _ALMOST <= shared < 2 * slices:
            cluster_m = 2  # 172 blocks take 17% longer than 344 for the sums of an f32[12193, 11008]
        threads = next(t for t in DOMAINS["threads"] if t * slices >= _BLOCK or t * vec >= inner or t >= 128)
        few = vec < 8 or cluster_m < 4 or walked <= _ROWS * slices * cluster_m  # registers, or blocks, or rows
        loads = 8 if few else 4
        if not few and walked >= _LONG * slices * cluster_m:
            slices, cluster_m, loads = slices * cluster_m // most, most, 2
        config = {"vec": vec, "threads": threads, "slices": slices, "cluster_m": cluster_m, "loads": loads}
        if across * slices * cluster_m >= _FULL // 2:
            break
    return config


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` is beyond; empty where it is feasible."""
    return str(rules.why_not(config))


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _Columns(problem, graph, config).text()


class _Columns(ColumnKernel):
    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        reserved = (
            "n inner outer columns column block tidx slice_ first step whole rest start at u batch i inside extent "
            "position meet join"
        )
        super().__init__(problem, graph, config, reserved)

    def text(self) -> str:
        kernel = self._kernel()
        sentences = (
            "Threads lie along the contiguous columns and share the walk down the reduced dimension in slices, and in "
            "clusters of blocks. The order of every sum is fixed, so results are the same at every call."
        )
        return self.bundled("column_reduction", NAME, sentences, DOMAINS, constraints(""), [kernel, self._launch()])

    # --- the kernel ---

    def _kernel(self) -> list[str]:
        body = [
            "tidx, slice_, _ = cute.arch.thread_idx()",
            "bidx, _, _ = cute.arch.block_idx()",
            "column = bidx // cluster_m * threads + tidx",
            "first = slice_  # of the rows this thread walks",
            "if cutlass.const_expr(cluster_m > 1):",
            "    first = cute.arch.block_idx_in_cluster() * slices + slice_",
            "step = slices * cluster_m",
            "whole = n // (step * loads) * step * loads  # rows, in batches that every thread has all of",
            "rest = (n - whole + step - 1) // step  # rows of a thread after them; its last may lie past the end",
            "# Threads past the last column work on it too, and store nothing: barriers stay uniform.",
            "source = cutlass.min(column, columns - 1)",
            "mine, batch = cute.make_layout(vec), cute.make_layout((vec, loads))",
            "smem = cutlass.utils.SmemAllocator()",
            "partials = smem.allocate_tensor(",
            "    Float32, cute.make_layout((vec, threads, slices), stride=(1, vec, vec * threads)), 16",
            ")",
            "rZero = cute.make_rmem_tensor(mine, Float32)",
            "rZero.fill(0.0)",
            "extent = cute.full_like(rZero.load(), n)",
            "",
        ]
        env: dict[int, str] = {}
        depths = self.graph.depths()
        reductions = [i for i, node in enumerate(self.graph.nodes) if isinstance(node, Reduce)]
        names = {index: self.reduction_name(index) for index in reductions}
        for index in sorted(reductions, key=lambda i: (depths[i], i)):
            body += self._reduction(index, names[index], env)
            env[index] = names[index]
        body += self._outputs(env)
        constants = ["n", "columns", "vec", "threads", "slices", "cluster_m", "loads", *self.sizes]
        return self.kernel("column_kernel", self.tensors, constants, body)

    def _reduction(self, index: int, name: str, env: dict[int, str]) -> list[str]:
        node = self.graph.nodes[index]
        assert isinstance(node, Reduce)
        register, inner = variable("r", name), dict(env)
        loads = self._loads([node.args[0]], inner, *_BATCH)
        text, _ = self.writer.expression(node.args[0], inner)
        combined = f"{COMBINE_VECTORS[node.op]}({register}.load(), {text})"
        return [
            f"{register} = cute.make_rmem_tensor(mine, Float32)",
            f"{register}.fill({number(NEUTRAL[node.op])})",
            *self._walk(
                loads,
                [f"{register}.store({combined})"],
                [
                    "inside = cute.full_like(extent, i < n, cutlass.Boolean)",
                    f"{register}.store(cute.where(inside, {combined}, {register}.load()))",
                ],
            ),
            "if cutlass.const_expr(slices * cluster_m > 1):",
            f"    meet({register}, partials, tidx, slice_, {COMBINE[node.op]}, slices, cluster_m)",
            f"{name} = {register}.load()",
            "",
        ]

    def _walk(self, loads: _Loads, whole: Sequence[str], left: Sequence[str]) -> list[str]:
        """The walk down a thread's rows, a batch at once, all of which ``loads`` bring before the first is used.

        ``whole`` uses row ``i`` of batches that every thread has all of, without a branch, into which the compiler
        would move loads; ``left`` of what remains, where ``i`` may lie past the end.
        """
        return [
            *self._batches("first, whole", "loads", "start + u * step", loads, whole),
            *self._batches("whole + first, n", "rest", "cutlass.min(start + u * step, n - 1)", loads, left),
        ]

    def _batches(self, rows: str, count: str, at: str, loads: _Loads, use: Sequence[str]) -> list[str]:
        """``count`` rows at once of the range ``rows``, each loaded from row ``at``."""
        registers, copies, values = loads
        return [
            f"for start in cutlass.range({rows}, step * loads, unroll=1):",
            *(f"    {line}" for line in registers),
            f"    for u in cutlass.range_constexpr({count}):",
            f"        at = {at}",
            *(f"        {line}" for line in copies),
            f"    for u in cutlass.range_constexpr({count}):",
            "        i = start + u * step",
            *(f"        {line}" for line in (*values, *use)),
        ]

    def _loads(self, roots: list[int], env: dict[int, str], layout: str, row: str, part: str) -> _Loads:
        """Lines that make registers, fill them from ``row``, and make ``roots`` expressible."""
        needed = self._needed(roots, env)
        registers, copies, values = [], [], []
        if any(isinstance(self.graph.nodes[index], Index) for index in needed):
            values.append("position = cute.full_like(rZero.load(), Float32(i))")
        for index, view in self.views.of_load.items():
            if index not in needed:
                continue
            register, source = variable("r", view.name), variable("g", view.name)
            registers.append(f"{register} = cute.make_rmem_tensor({layout}, {source}.element_type)")
            if self.wide(view):
                copies.append(f"cute.autovec_copy({source}[None, source, {row}], {register}{part})")
            else:
                copies.append(f"{register}{part}.fill({source}[source, {row}])")
            values.append(f"{view.name} = {register}{part}.load().to(Float32)")
            env[index] = view.name
        return registers, copies, values + self.writer.assignments(roots, env, {})

    def _needed(self, roots: list[int], env: dict[int, str]) -> set[int]:
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            index = stack.pop()
            if index not in seen and index not in env:
                seen.add(index)
                node = self.graph.nodes[index]
                stack.extend(node.args if isinstance(node, Map) else ())
        return seen

    def _outputs(self, env: dict[int, str]) -> list[str]:
        """One more walk for outputs that vary along it; the others are stored once, by the first slice."""
        every = list(zip(self.outputs, self.graph.outputs, strict=True))
        walked = [(name, output) for name, output in every if output.dims[self.axis] is not None]
        single = [(name, output) for name, output in every if output.dims[self.axis] is None]
        lines: list[str] = []
        if single:
            inner = dict(env)
            parts = self._loads([output.node for _, output in single], inner, "mine", "0", "")
            body = ["i = 0", *(line for part in parts for line in part), *self._stores(single, inner, "0")]
            lines += ["if column < columns and first == 0:", *(f"    {line}" for line in body)]
        if walked:
            inner = dict(env)
            loads = self._loads([output.node for _, output in walked], inner, *_BATCH)
            stores = [f"    {line}" for line in self._stores(walked, inner, "i")]
            lines += self._walk(loads, ["if column < columns:", *stores], ["if column < columns and i < n:", *stores])
        return lines

    def _stores(self, outputs: list[tuple[str, Output]], env: dict[int, str], row: str) -> list[str]:
        lines = []
        for name, output in outputs:
            text, _ = self.writer.expression(output.node, env)
            register, target = variable("r", name), variable("g", name)
            lines += [f"{register} = cute.make_rmem_tensor(mine, {target}.element_type)"]
            lines += [f"{register}.store(({text}).to({target}.element_type))"]
            lines += [f"cute.autovec_copy({register}, {target}[None, column, {row}])"]
        return lines

    def _launch(self) -> list[str]:
        names = [*self.tensors, "n", "columns", "width", "threads", "slices", "cluster_m", "loads", *self.sizes]
        return [
            *self.launch_head(),
            *self.size_and_view_lines(),
            f"    column_kernel({', '.join(names)}).launch(",
            "        grid=[(columns + threads - 1) // threads * cluster_m, 1, 1],",
            "        block=[threads, slices, 1],",
            "        cluster=[cluster_m, 1, 1] if cutlass.const_expr(cluster_m > 1) else None,",
            "        stream=stream,",
            "    )",
        ]


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write)
