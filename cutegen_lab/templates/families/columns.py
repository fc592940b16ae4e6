"""Reductions over a dimension that is not the last: threads lie along the inner dimensions, which stay contiguous.

Each thread owns ``vec`` adjacent columns and, with ``slices - 1`` others, walks down the reduced dimension; the slices'
partial results meet in shared memory. Every reduction is one pass, and a last pass writes what varies along it, so a
column is read once a pass (from L2 where it fits).
"""

from __future__ import annotations

import math

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.cute_text import number
from cutegen_lab.templates.expr import NEUTRAL, Dot, Graph, Index, Map, Output, Pick, Reduce, Scan, Total
from cutegen_lab.templates.families.column_kernel import ColumnKernel
from cutegen_lab.templates.families.kernel_module import COMBINE_VECTORS
from cutegen_lab.templates.module import variable

NAME = "column reduction"
DOMAINS = {
    "vec": (1, 2, 4, 8),
    "threads": (16, 32, 64, 128, 256),
    "slices": (1, 2, 4, 8, 16, 32),
    "loads": (1, 2, 4, 8),
}
KNOBS = {
    ("slices", 1): "Twice as many threads share a column: more loads in flight when there are few columns.",
    ("loads", 1): "Twice the independent loads in flight a thread.",
    ("threads", -1): "Narrower blocks: more of them for the same columns.",
    ("slices", -1): "Fewer partial results to meet in shared memory.",
    ("vec", 1): "Half as many memory instructions for the same bytes.",
    ("threads", 1): "Wider blocks: longer contiguous reads.",
    ("vec", -1): "Twice as many threads for the same columns.",
    ("loads", -1): "Fewer registers a thread.",
}
MAX_SMEM = 48 << 10


def matches(graph: Graph) -> bool:
    rank = len(graph.space)
    if len(graph.reduced) != 1 or graph.reduced[0] == rank - 1:
        return False
    return not any(isinstance(node, Dot | Pick | Scan | Total) for node in graph.nodes)


def default_config(graph: Graph, workload: Workload) -> Config:
    """Enough blocks and slices to fill the GPU: wide vectors only where there are columns to spare."""
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    vec = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    inner = math.prod(graph.space[graph.reduced[0] + 1 :])
    threads = next((t for t in DOMAINS["threads"] if t * vec >= inner), 32)
    threads = min(threads, 32)
    slices = min(max(256 // threads, 1), 32)
    config = {"vec": vec, "threads": threads, "slices": slices, "loads": 4}
    while not feasible(graph, config):
        config["slices"] //= 2
    return config


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` is beyond; empty where it is feasible."""
    threads = int(config["threads"]) * int(config["slices"])
    smem = threads * int(config["vec"]) * 4
    if threads > 1024:
        return f"{threads:,} threads in a block, of 1,024 at most"
    return f"{smem:,} bytes of shared memory for partial results, of {MAX_SMEM:,} at most" if smem > MAX_SMEM else ""


def feasible(graph: Graph, config: Config) -> bool:
    return not why_not(graph, config)


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _Columns(problem, graph, config).text()


class _Columns(ColumnKernel):
    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        super().__init__(problem, graph, config, "n inner outer columns column block tidx slice_ i extent position")

    def text(self) -> str:
        kernel = self._kernel()
        sentences = "Threads lie along the contiguous columns and share the walk down the reduced dimension in slices."
        host = [
            "def constraints(config, workload, device):",
            '    """At most 1,024 threads; partial results in 48 KB."""',
            '    threads = config["threads"] * config["slices"]',
            f'    return threads <= 1024 and threads * config["vec"] * 4 <= {MAX_SMEM}',
        ]
        return self.module(NAME, sentences, DOMAINS, host, [], [kernel, self._launch()])

    # --- the kernel ---

    def _kernel(self) -> list[str]:
        body = [
            "tidx, slice_, _ = cute.arch.thread_idx()",
            "bidx, _, _ = cute.arch.block_idx()",
            "column = bidx * threads + tidx",
            "# Threads past the last column work on it too, and store nothing: barriers stay uniform.",
            "source = cutlass.min(column, columns - 1)",
            "mine = cute.make_layout(vec)",
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
        constants = ["n", "columns", "vec", "threads", "slices", "loads", *self.sizes]
        return self.kernel("column_kernel", self.tensors, constants, body)

    def _reduction(self, index: int, name: str, env: dict[int, str]) -> list[str]:
        node = self.graph.nodes[index]
        assert isinstance(node, Reduce)
        neutral = number(NEUTRAL[node.op])
        inner = dict(env)
        loads = self._load_lines([node.args[0]], inner)
        lines = self.writer.assignments([node.args[0]], inner, {})
        text, _ = self.writer.expression(node.args[0], inner)
        register = variable("r", name)
        combined = COMBINE_VECTORS[node.op].format(f"{register}.load()", f"({text})")
        meet = COMBINE_VECTORS[node.op].format(f"{register}.load()", "partials[None, tidx, other].load()")
        return [
            f"{register} = cute.make_rmem_tensor(mine, Float32)",
            f"{register}.fill({neutral})",
            "for i in cutlass.range(slice_, n, slices, unroll=loads):",
            *(f"    {line}" for line in (*loads, *lines)),
            f"    {register}.store({combined})",
            "if cutlass.const_expr(slices > 1):",
            f"    cute.autovec_copy({register}, partials[None, tidx, slice_])",
            "    cute.arch.sync_threads()",
            f"    {register}.fill({neutral})",
            "    for other in cutlass.range_constexpr(slices):",
            f"        {register}.store({meet})",
            "    cute.arch.sync_threads()  # the partial results make room for the next reduction's",
            f"{name} = {register}.load()",
            "",
        ]

    def _load_lines(self, roots: list[int], env: dict[int, str]) -> list[str]:
        """Loads that ``roots`` need at row ``i`` of the walk."""
        needed = self._needed(roots, env)
        lines = []
        if any(isinstance(self.graph.nodes[i], Index) for i in needed):
            lines.append("position = cute.full_like(rZero.load(), Float32(i))")
        for index, view in self.views.of_load.items():
            if index not in needed:
                continue
            name = view.name
            register, source = variable("r", name), variable("g", name)
            lines.append(f"{register} = cute.make_rmem_tensor(mine, {source}.element_type)")
            if self.wide(view):
                lines.append(f"cute.autovec_copy({source}[None, source, i], {register})")
            else:
                lines.append(f"{register}.fill({source}[source, i])")
            lines.append(f"{name} = {register}.load().to(Float32)")
            env[index] = name
        return lines

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
        walked = [
            (n, o) for n, o in zip(self.outputs, self.graph.outputs, strict=True) if o.dims[self.axis] is not None
        ]
        single = [(n, o) for n, o in zip(self.outputs, self.graph.outputs, strict=True) if o.dims[self.axis] is None]
        lines: list[str] = []
        if single:
            inner = dict(env)
            body = self._store_lines(single, inner, "0")
            lines += ["if column < columns and slice_ == 0:", "    i = 0", *(f"    {line}" for line in body)]
        if walked:
            inner = dict(env)
            body = self._store_lines(walked, inner, "i")
            lines += ["if column < columns:", "    for i in cutlass.range(slice_, n, slices, unroll=loads):"]
            lines += [f"        {line}" for line in body]
        return lines

    def _store_lines(self, outputs: list[tuple[str, Output]], env: dict[int, str], row: str) -> list[str]:
        roots = [self.graph.outputs[self.outputs.index(name)].node for name, _ in outputs]
        lines = self._load_lines(roots, env)
        lines += self.writer.assignments(roots, env, {})
        for (name, _), root in zip(outputs, roots, strict=True):
            text, _ = self.writer.expression(root, env)
            register, target = variable("r", name), variable("g", name)
            lines += [f"{register} = cute.make_rmem_tensor(mine, {target}.element_type)"]
            lines += [f"{register}.store(({text}).to({target}.element_type))"]
            lines += [f"cute.autovec_copy({register}, {target}[None, column, {row}])"]
        return lines

    def _launch(self) -> list[str]:
        names = [*self.tensors, "n", "columns", "width", "threads", "slices", "loads", *self.sizes]
        return [
            *self.launch_head(),
            *self.size_and_view_lines(),
            f"    column_kernel({', '.join(names)}).launch(",
            "        grid=[(columns + threads - 1) // threads, 1, 1],",
            "        block=[threads, slices, 1],",
            "        stream=stream,",
            "    )",
        ]
