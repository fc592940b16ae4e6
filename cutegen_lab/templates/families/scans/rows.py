"""Scans along the last dimension: a row is walked in steps, what came before is carried from one to the next.

Each step's vectors are scanned by the threads that hold them, by warps with shuffles, and over all warps of the row
through shared memory, in two buffers by turns, so that one barrier a step is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.emit.cute_text import number
from cutegen_lab.templates.emit.module import constraints
from cutegen_lab.templates.emit.views import View
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.kernel_module import COMBINE
from cutegen_lab.templates.families.rows.row_kernel import RowKernel
from cutegen_lab.templates.families.scans.scanning import Scanning
from cutegen_lab.templates.frontend.expr import NEUTRAL, Dot, Graph, Index, Pick, Place, Reduce, Scan, Total
from cutegen_lab.templates.frontend.names import variable
from cutegen_lab.templates.kernels.rules import row_scan as rules

NAME = "row scan"
DOMAINS = {
    "vec": (1, 2, 4, 8),
    "threads_per_row": (32, 64, 128, 256, 512, 1024),
    "rows_per_block": (1, 2, 4, 8, 16),
    "loads": (1, 2, 4, 8),
}
KNOBS = {
    ("loads", 1): "Twice the independent loads in flight a thread, and half as many barriers.",
    ("threads_per_row", 1): "Longer steps: fewer barriers a row.",
    ("rows_per_block", 1): "Larger blocks: half as many to start, and one barrier serves two rows.",
    ("threads_per_row", -1): "Barriers wait for fewer warps, and more blocks fit an SM.",
    ("vec", 1): "Half as many memory instructions for the same bytes, and half as many shuffles.",
    ("loads", -1): "Fewer registers a thread: more warps fit an SM.",
    ("rows_per_block", -1): "Smaller blocks: barriers wait for fewer warps and the last wave is finer.",
    ("vec", -1): "Narrower accesses: fewer registers a thread.",
}


def matches(graph: Graph) -> bool:
    """Scans of elementwise values, and nothing else, along the last dimension."""
    return scans_alone(graph) and graph.reduced == (len(graph.space) - 1,)


def scans_alone(graph: Graph) -> bool:
    """Scans, all from the same end and of nothing scanned, with no reduction, product or index beside them."""
    after: list[bool] = []
    for node in graph.nodes:
        inside = any(after[a] for a in node.args)
        if isinstance(node, Dot | Index | Pick | Place | Reduce | Total) or (isinstance(node, Scan) and inside):
            return False
        after.append(inside or isinstance(node, Scan))
    return len({scan.reverse for _, scan in graph.scans()}) == 1


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors and about 32 bytes in flight a thread; rows of one step where a block can do it."""
    n = graph.space[-1]
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    vec = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    width = 1 if any(graph.padding(load) for _, load in graph.loads()) else math.gcd(n, vec)
    loads = min(max(32 // (width * itemsize), 1), DOMAINS["loads"][-1])
    most = [t for t in DOMAINS["threads_per_row"] if t // 32 * loads <= rules.SLOTS]
    threads = next((t for t in most if n // width <= loads * t), min(256, most[-1]))
    rows = math.prod(graph.space[:-1])
    per_block = max(128 // threads, 1)
    while per_block > 1 and per_block > rows:
        per_block //= 2
    return {"vec": vec, "threads_per_row": threads, "rows_per_block": per_block, "loads": loads}


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` is beyond; empty where it is feasible."""
    return str(rules.why_not(config))


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _RowScans(problem, graph, config).text()


class _RowScans(Scanning, RowKernel):
    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        reserved = (
            "n rows vec row lane vectors share steps step turn start mine sure tidx bidx source_row width smem slots"
        )
        super().__init__(problem, graph, config, reserved)

    def text(self) -> str:
        kernel = self._kernel()
        sentences = (
            "A block walks its rows in steps; threads, then warps, then all warps of a row scan what they hold, and "
            "what came before is carried along. Every element is read once and every result written once."
        )
        return self.bundled("row_scan", NAME, sentences, DOMAINS, constraints(""), [kernel, self._launch()])

    def _kernel(self) -> list[str]:
        body = [
            "tidx, _, _ = cute.arch.thread_idx()",
            "bidx, _, _ = cute.arch.block_idx()",
            "lane = tidx % threads_per_row",
            "row = bidx * rows_per_block + tidx // threads_per_row",
            "# Threads past the last row work on it too, and store nothing: barriers stay uniform.",
            "source_row = cutlass.min(row, rows - 1)",
            "vectors = n // vec",
            "share = threads_per_row * loads  # vectors of a step",
            "steps = (vectors + share - 1) // share",
            "sure = loads if vectors % share == 0 else 0  # of the vectors of a step, that every thread has",
            "mine = cute.make_layout((vec, loads))",
            "smem = cutlass.utils.SmemAllocator()",
            "slots = cute.make_layout((loads * threads_per_row // 32, rows_per_block, 2))",
            *(f"parts_{name} = smem.allocate_tensor(Float32, slots, 16)" for name in self.names.values()),
        ]
        wide = {name: view for name, view in self.views.by_name.items() if self.along(view)}
        for name in self.views.loaded:
            if name in wide:
                register = variable("r", name)
                body.append(f"{register} = cute.make_rmem_tensor(mine, {variable('g', name)}.element_type)")
                body.append(f"{register}.fill(0.0)")
            else:
                body.append(f"{name} = Float32({variable('g', name)}[source_row])")
        for index, name in self.names.items():
            body.append(f"r{name} = cute.make_rmem_tensor(mine, Float32)")
            body.append(f"{name} = Float32({number(NEUTRAL[self.scans[index].op])})")
        body += ["for step in cutlass.range(steps, unroll=1):", *(f"    {line}" for line in self._step(wide))]
        constants = ["rows", "n", "vec", "threads_per_row", "rows_per_block", "loads", *self.sizes]
        return self.kernel("scan_kernel", self.tensors, constants, body)

    def _step(self, wide: Mapping[str, View]) -> list[str]:
        start, stride = "step * share + lane", "threads_per_row"
        if self.reverse:
            start, stride = f"vectors - 1 - ({start})", "-threads_per_row"
        lines = [f"start = {start}"]
        for name in self.views.loaded:
            if name in wide:
                padding = self.padding[name]
                given = f"{variable('g', name)}, {variable('r', name)}, source_row, start, {stride}, "
                move = f"fetch_after({given}{padding})" if padding else f"fetch({given}sure)"
                lines += [move, f"{name} = {variable('r', name)}.load().to(Float32)"]

        def scan_lines(name: str, scan: Scan) -> list[str]:
            combine, neutral = COMBINE[scan.op], number(NEUTRAL[scan.op])
            return [
                f"{name} = row_scan(",
                f"    r{name}, parts_{name}, {name}, step % 2, {combine}, {neutral}, threads_per_row, {self.reverse}",
                ")",
            ]

        lines += self._scanned(scan_lines)
        lines.append("if row < rows:")
        for name in self.outputs:
            lines.append(f"    put({variable('r', name)}, {variable('g', name)}, row, start, {stride}, sure)")
        return lines

    def _scanned(self, scan_lines: Callable[[str, Scan], list[str]]) -> list[str]:
        """A step from loaded values to registers with its results; ``scan_lines`` scan ``r{name}`` in place."""
        env = {index: view.name for index, view in self.views.of_load.items()}
        lines = self.writer.assignments([scan.args[0] for scan in self.scans.values()], env, {})
        for index, scan in self.scans.items():
            name = self.names[index]
            lines += [f"r{name}.store({self._vector(scan.args[0], env)})", *scan_lines(name, scan)]
            env[index] = f"r{name}.load()"
        named = list(zip(self.outputs, self.graph.outputs, strict=True))
        lines += self.writer.assignments([output.node for _, output in named], env, {})
        for name, output in named:
            register, target = variable("r", name), variable("g", name)
            lines.append(f"{register} = cute.make_rmem_tensor(mine, {target}.element_type)")
            lines.append(f"{register}.store(({self._vector(output.node, env)}).to({target}.element_type))")
        return lines

    def _vector(self, index: int, env: dict[int, str]) -> str:
        text, _ = self.writer.expression(index, env)
        like = next(iter(self.names.values()))
        return text if self.writer.is_vector(index) else f"cute.full_like(r{like}.load(), {text})"

    def _launch(self) -> list[str]:
        sizes = ["rows", "n", "width", "threads_per_row", "rows_per_block", "loads", *self.sizes]
        return [
            *self.launch_head(),
            *self.size_and_view_lines(),
            f"    scan_kernel({', '.join([*self.tensors, *sizes])}).launch(",
            "        grid=[(rows + rows_per_block - 1) // rows_per_block, 1, 1],",
            "        block=[threads_per_row * rows_per_block, 1, 1],",
            "        stream=stream,",
            "    )",
        ]


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write)
