"""Scans along a dimension that is not the last: threads lie along the contiguous columns and walk down them in steps.

Of a step's rows each slice of a block takes ``loads`` that follow one another. Slices meet in shared memory, in two
buffers by turns, so that one barrier a step is enough; what came before is carried in registers.
"""

from __future__ import annotations

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.cute_text import number
from cutegen_lab.templates.expr import NEUTRAL, Graph, Scan
from cutegen_lab.templates.families.column_kernel import ColumnKernel
from cutegen_lab.templates.families.kernel_module import COMBINE
from cutegen_lab.templates.families.scans.rows import MAX_VALUES, scans_alone
from cutegen_lab.templates.families.scans.scanning import Scanning
from cutegen_lab.templates.module import variable

NAME = "column scan"
DOMAINS = {
    "vec": (1, 2, 4, 8),
    "threads": (16, 32, 64, 128, 256),
    "slices": (1, 2, 4, 8, 16, 32),
    "loads": (1, 2, 4, 8, 16),
}
KNOBS = {
    ("loads", 1): "Twice the independent loads in flight a thread, and half as many barriers.",
    ("slices", 1): "Twice as many threads share a column: more loads in flight when there are few columns.",
    ("threads", -1): "Narrower blocks: more of them for the same columns.",
    ("slices", -1): "Fewer partial results to add up before each thread's rows.",
    ("vec", 1): "Half as many memory instructions for the same bytes.",
    ("threads", 1): "Wider blocks: longer contiguous reads.",
    ("vec", -1): "Twice as many threads for the same columns.",
    ("loads", -1): "Fewer registers a thread: more warps fit an SM.",
}
MAX_SMEM = 48 << 10


def matches(graph: Graph) -> bool:
    """Scans of elementwise values, and nothing else, along one dimension before the last."""
    if not scans_alone(graph) or len(graph.reduced) != 1 or graph.reduced[0] == len(graph.space) - 1:
        return False
    return all(load.dims[-1] is not None or not graph.padding(load) for _, load in graph.loads())


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors, half a warp of them along the columns; a thread has 32 values at a time."""
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    vec = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    return {"vec": vec, "threads": 16, "slices": 16, "loads": min(32 // vec, DOMAINS["loads"][-1])}


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` is beyond; empty where it is feasible."""
    threads, vec = int(config["threads"]) * int(config["slices"]), int(config["vec"])
    smem, values = 8 * threads * vec, vec * int(config["loads"])
    if threads > 1024:
        return f"{threads:,} threads in a block, of 1,024 at most"
    if smem > MAX_SMEM:
        return f"{smem:,} bytes of shared memory for the slices' sums, of {MAX_SMEM:,} at most"
    return f"{values} values in a thread's registers, of {MAX_VALUES} at most" if values > MAX_VALUES else ""


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _ColumnScans(problem, graph, config).text()


class _ColumnScans(Scanning, ColumnKernel):
    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        reserved = "n inner outer columns column tidx bidx slice_ source mine share steps step start stride ragged smem"
        super().__init__(problem, graph, config, reserved)

    def text(self) -> str:
        kernel = self._kernel()
        sentences = (
            "A block walks down its columns in steps; threads scan their rows, slices meet in shared memory, and what "
            "came before is carried along. Every element is read once and every result written once."
        )
        host = [
            "def constraints(config, workload, device):",
            '    """At most 1,024 threads; two steps\' partial results in 48 KB; values in registers."""',
            '    threads = config["threads"] * config["slices"]',
            f'    fits = threads <= 1024 and 8 * threads * config["vec"] <= {MAX_SMEM}',
            f'    return fits and config["vec"] * config["loads"] <= {MAX_VALUES}',
        ]
        inside = "row >= 0" if self.reverse else "row < cute.size(gX, mode=[cute.rank(gX) - 1])"
        padded = [_FETCH_AFTER] if any(self.padding.values()) else []
        moves = _MOVES.replace("$inside", inside)
        return self.module(
            NAME, sentences, DOMAINS, host, [*self.combiners(), moves, *padded, _SCAN], [kernel, self._launch()]
        )

    def _kernel(self) -> list[str]:
        body = [
            "tidx, slice_, _ = cute.arch.thread_idx()",
            "bidx, _, _ = cute.arch.block_idx()",
            "column = bidx * threads + tidx",
            "# Threads past the last column work on it too, and store nothing: barriers stay uniform.",
            "source = cutlass.min(column, columns - 1)",
            "share = slices * loads  # rows of a step",
            "steps = (n + share - 1) // share",
            "ragged = n % share != 0",
            "mine = cute.make_layout((vec, loads))",
            "smem = cutlass.utils.SmemAllocator()",
            "parts = cute.make_layout((vec, threads, slices, 2))",
        ]
        for index, name in self.names.items():
            body += [
                f"parts_{name} = smem.allocate_tensor(Float32, parts, 16)",
                f"{name} = cute.make_rmem_tensor(vec, Float32)  # what came before",
                f"{name}.fill({number(NEUTRAL[self.scans[index].op])})",
                f"r{name} = cute.make_rmem_tensor(mine, Float32)",
            ]
        for name in self.views.loaded:
            body.append(f"{variable('r', name)} = cute.make_rmem_tensor(mine, {variable('g', name)}.element_type)")
            body.append(f"{variable('r', name)}.fill(0.0)")
        body += ["for step in cutlass.range(steps, unroll=1):", *(f"    {line}" for line in self._step())]
        constants = ["n", "columns", "vec", "threads", "slices", "loads", *self.sizes]
        return self.kernel("scan_kernel", self.tensors, constants, body)

    def _step(self) -> list[str]:
        start, stride = "(step * slices + slice_) * loads", "1"
        if self.reverse:
            start, stride = f"n - 1 - {start}", "-1"
        lines = [f"start = {start}"]
        for name in self.views.loaded:
            move = "fetch" if self.wide(self.views.by_name[name]) else "spread"
            padding = self.padding[name]
            given = f"{variable('g', name)}, {variable('r', name)}, source, start, {stride}, "
            call = f"fetch_after({given}{padding})" if padding else f"{move}({given}ragged)"
            lines += [call, f"{name} = {variable('r', name)}.load().to(Float32)"]

        def scan_lines(name: str, scan: Scan) -> list[str]:
            return [f"column_scan(r{name}, parts_{name}, {name}, step % 2, {COMBINE[scan.op]}, slices)"]

        lines += self.scanned(scan_lines)
        lines.append("if column < columns:")
        for name in self.outputs:
            lines.append(f"    put({variable('r', name)}, {variable('g', name)}, column, start, {stride}, ragged)")
        return lines

    def _launch(self) -> list[str]:
        names = [*self.tensors, "n", "columns", "width", "threads", "slices", "loads", *self.sizes]
        return [
            *self.launch_head(),
            *self.size_and_view_lines(),
            f"    scan_kernel({', '.join(names)}).launch(",
            "        grid=[(columns + threads - 1) // threads, 1, 1],",
            "        block=[threads, slices, 1],",
            "        stream=stream,",
            "    )",
        ]


_MOVES = '''
@cute.jit
def fetch(
    gX: cute.Tensor,
    rX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    ragged: cutlass.Constexpr,
):
    """Loads a thread's vectors of one step: rows ``start``, ``start + stride``, … of its columns."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if cutlass.const_expr(not ragged):
            cute.autovec_copy(gX[None, column, row], rX[None, i])
        elif $inside:
            cute.autovec_copy(gX[None, column, row], rX[None, i])


@cute.jit
def spread(
    gX: cute.Tensor,
    rX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    ragged: cutlass.Constexpr,
):
    """Loads what has one value for all columns of a vector."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if cutlass.const_expr(not ragged):
            rX[None, i].fill(gX[column, row])
        elif $inside:
            rX[None, i].fill(gX[column, row])


@cute.jit
def put(
    rX: cute.Tensor,
    gX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    ragged: cutlass.Constexpr,
):
    """Stores what ``fetch`` would load."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if cutlass.const_expr(not ragged):
            cute.autovec_copy(rX[None, i], gX[None, column, row])
        elif $inside:
            cute.autovec_copy(rX[None, i], gX[None, column, row])
'''

_FETCH_AFTER = '''
@cute.jit
def fetch_after(
    gX: cute.Tensor,
    rX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    padding: cutlass.Constexpr,
):
    """As ``fetch``, with zeros before the first row."""
    rX.fill(0.0)
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if row >= padding and row < cute.size(gX, mode=[2]):
            cute.autovec_copy(gX[None, column, row - padding], rX[None, i])
'''

_SCAN = '''
@cute.jit
def column_scan(
    rX: cute.Tensor,
    parts: cute.Tensor,
    rCarried: cute.Tensor,
    turn: cutlass.Int32,
    op: cutlass.Constexpr,
    slices: cutlass.Constexpr,
):
    """Scans a step in place: ``rX`` (values of a vector, rows) a thread, whose slice follows those before it.

    ``rCarried`` comes before the step, and then before the next. ``parts`` are partial results (values of a vector,
    threads, slices, 2): a warp that is a step ahead writes to the other half.
    """
    tidx, slice_, _ = cute.arch.thread_idx()
    loads = rX.shape[1]
    for i in cutlass.range_constexpr(1, loads):
        rX[None, i].store(op(rX[None, i - 1].load(), rX[None, i].load()))
    cute.autovec_copy(rX[None, loads - 1], parts[None, tidx, slice_, turn])
    cute.arch.sync_threads()
    rStart = cute.make_fragment_like(rCarried)
    rStart.store(rCarried.load())
    for other in cutlass.range_constexpr(slices):
        part = parts[None, tidx, other, turn].load()
        if other < slice_:
            rStart.store(op(rStart.load(), part))
        rCarried.store(op(rCarried.load(), part))
    for i in cutlass.range_constexpr(loads):
        rX[None, i].store(op(rStart.load(), rX[None, i].load()))
'''
