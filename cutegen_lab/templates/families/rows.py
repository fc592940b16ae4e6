"""Row reductions: the reduced dimensions are the last ones, a row stays in registers between its reductions.

A row is split over ``threads_per_row`` threads of each of ``cluster_n`` blocks. Each thread keeps its share and
reduces it, then the warp, then the warps of the row through shared memory, then the cluster's blocks through
distributed shared memory. Every load of a thread is issued before the first is used, so the loads in flight a thread
are ``n / (vec · threads_per_row · cluster_n)``.
"""

from __future__ import annotations

import math

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.cute_text import Writer, divided_by_rows, number
from cutegen_lab.templates.expr import Graph, Index, Reduce
from cutegen_lab.templates.module import (
    CUTE_TYPE,
    Space,
    approximate,
    clean,
    constexprs,
    header,
    helpers,
    signature,
    tunable,
    variable,
)

NAME = "row reduction"
DOMAINS = {
    "vec": (1, 2, 4, 8, 16),
    "threads_per_row": (8, 16, 32, 64, 128, 256, 512, 1024),
    "rows_per_block": (1, 2, 4, 8, 16, 32),
    "cluster_n": (1, 2, 4, 8),
}
KNOBS = {
    ("threads_per_row", -1): "Each thread keeps twice the loads in flight and the reductions cross half as many warps.",
    ("rows_per_block", 1): "Larger blocks: half as many to start, and one barrier serves two rows.",
    ("threads_per_row", 1): "Half the registers a thread: more warps fit an SM and hide each other's waits.",
    ("vec", 1): "Half as many memory instructions for the same bytes.",
    ("rows_per_block", -1): "Smaller blocks: barriers wait for fewer warps and the last wave is finer.",
    ("vec", -1): "Narrower accesses spread a row over more loads.",
    ("cluster_n", 1): "Twice the blocks share a row: half the registers a thread, reductions over distributed memory.",
    ("cluster_n", -1): "Half the blocks share a row: fewer waits on other multiprocessors.",
}
MAX_VALUES = 64  # of a row in one thread's registers
NEUTRAL = {"add": 0.0, "mul": 1.0, "max": -math.inf, "min": math.inf}
_COMBINE = {
    "add": "lambda a, b: a + b", "mul": "lambda a, b: a * b",
    "max": "lambda a, b: cute.arch.fmax(a, b, nan=True)", "min": "lambda a, b: cute.arch.fmin(a, b, nan=True)",
}  # fmt: skip

_ROW_REDUCE = '''
@cute.jit
def row_reduce(
    value: Float32,
    buffer: cute.Tensor,
    op: cutlass.Constexpr,
    neutral: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
):
    """Reduces one value a thread over the threads of its row; each of them gets the result.

    Within a warp by shuffles; across the warps of a row through ``buffer`` (rows a block, warps a row).
    """
    result = cute.arch.warp_reduction(value, op, threads_in_group=min(threads_per_row, 32))
    if cutlass.const_expr(threads_per_row > 32):
        tidx, _, _ = cute.arch.thread_idx()
        warps = threads_per_row // 32
        lane = tidx % 32
        warp = (tidx % threads_per_row) // 32
        local_row = tidx // threads_per_row
        if lane == 0:
            buffer[local_row, warp] = result
        cute.arch.sync_threads()
        partial = Float32(neutral)
        if lane < warps:
            partial = buffer[local_row, lane]
        result = cute.arch.warp_reduction(partial, op)
    return result
'''

_CLUSTER_REDUCE = '''
@cute.jit
def cluster_reduce(
    value: Float32,
    parts: cute.Tensor,
    arrived: cute.Pointer,
    rank: cutlass.Int32,
    op: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
):
    """Reduces one value a row over the blocks of a cluster, through their distributed shared memory.

    Every block sends its value to every block; each waits for all of ``parts`` (blocks, rows a block) to arrive.
    """
    tidx, _, _ = cute.arch.thread_idx()
    lane = tidx % threads_per_row
    local_row = tidx // threads_per_row
    mine = cute.make_rmem_tensor(cute.make_layout(1), Float32)
    mine[0] = value
    bits = cute.recast_tensor(mine, cutlass.Int32)  # the store takes 32-bit integers
    if tidx == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, cute.size(parts) * 4)
    if lane < cluster_n:
        cute.arch.store_async_dsmem(parts.iterator + (local_row * cluster_n + rank), bits[0], arrived, lane)
    cute.arch.mbarrier_wait(arrived, 0)
    result = parts[0, local_row]
    for i in cutlass.range_constexpr(1, cluster_n):
        result = op(result, parts[i, local_row])
    return result
'''

_FOLD = '''
def fold(values, op, neutral, columns, n):
    """Reduces a thread's values; ``columns`` (None where every value is real) masks what lies past the row's end."""
    if columns is not None:
        values = cute.where(columns < n, values, cute.full_like(values, neutral))
    return values.reduce(op, neutral, reduction_profile=0)
'''


def matches(graph: Graph) -> bool:
    rank = len(graph.space)
    return bool(graph.reduced) and graph.reduced[-1] == rank - 1 and not _partly_along(graph)


def _partly_along(graph: Graph) -> bool:
    """A load that walks along some but not all reduced dimensions has no single stride along the row."""
    for _, load in graph.loads():
        along = [load.dims[d] is not None for d in graph.reduced]
        if any(along) and not all(along):
            return True
    return False


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors; as few threads a row as keep about four vectors each in flight; full warps in a block. A row too
    long for one block is shared by a cluster."""
    n = math.prod(graph.space[d] for d in graph.reduced)
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    vec = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    vectors = -(-n // math.gcd(n, vec))
    threads = next((t for t in DOMAINS["threads_per_row"] if vectors <= 4 * t), 1024)
    rows = math.prod(graph.space) // max(n, 1)
    per_block = max(128 // threads, 1)
    while per_block > 1 and per_block > rows:
        per_block //= 2
    config = {"vec": vec, "threads_per_row": threads, "rows_per_block": per_block, "cluster_n": 1}
    while not feasible(graph, config) and config["cluster_n"] < DOMAINS["cluster_n"][-1]:
        config["cluster_n"] *= 2
    return config


def feasible(graph: Graph, config: Config) -> bool:
    n = math.prod(graph.space[d] for d in graph.reduced)
    threads = int(config["threads_per_row"]) * int(config["rows_per_block"])
    vec = math.gcd(n, int(config["vec"]))
    cluster = int(config["cluster_n"])
    chunks = -(-n // (vec * int(config["threads_per_row"]) * cluster))
    fits = threads % 32 == 0 and threads <= 1024 and vec * chunks <= MAX_VALUES
    return fits and cluster <= int(config["threads_per_row"])


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _Rows(problem, graph, config).text()


class _Rows:
    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        self.problem, self.config = problem, config
        fast, coarse = approximate(problem.workload)
        self.graph = divided_by_rows(graph) if fast else graph
        self.fast = fast
        self.inputs = tuple(t.name for t in problem.workload.inputs)
        self.outputs = tuple(t.name for t in problem.workload.outputs)
        self.space = Space(self.graph, self.inputs)
        self.outer = [d for d in range(len(self.graph.space)) if d not in self.graph.reduced]
        self.writer = Writer(
            self.graph, self.graph.varies, fast=fast, coarse=coarse, extent="n", index="columns.load()"
        )  # fmt: skip
        reserved = [
            "n",
            "rows",
            "vec",
            "row",
            "lane",
            "first",
            "stride",
            "rank",
            "arrived",
            "columns",
            "vectors",
            "chunks",
            "ragged",
            "tidx",
            "local_row",
            "width",
        ]
        self.writer.reserve([*reserved, *self.inputs, *self.outputs])
        self.used = sorted({load.tensor for _, load in self.graph.loads()})

    # --- the whole module ---

    def text(self) -> str:
        kernel, launch = self._kernel(), self._launch()
        sentences = (
            "A row stays in registers between its reductions: it is read once and written once. Each thread issues "
            "all its loads before it uses the first."
        )
        lines = header(self.problem, self.graph, NAME, sentences)
        lines += tunable(DOMAINS) + self._constraints() + helpers(self.writer.helpers)
        lines += [
            "",
            _FOLD.strip(),
            "",
            "",
            _ROW_REDUCE.strip(),
            "",
            "",
            _CLUSTER_REDUCE.strip(),
            "",
            "",
            *kernel,
            "",
            "",
            *launch,
        ]
        return clean(lines)

    def _constraints(self) -> list[str]:
        axis = self.graph.extent_from
        n = " * ".join(f"workload.inputs[{axis[d][0]}].shape[{axis[d][1]}]" for d in self.graph.reduced)
        return [
            "",
            "def constraints(config, workload, device):",
            '    """Whole warps in a block of at most 1,024 threads, and a thread\'s share of the row in registers."""',
            f"    n = {n}",
            '    threads = config["threads_per_row"] * config["rows_per_block"]',
            '    vec = math.gcd(n, config["vec"])',
            '    chunks = -(-n // (vec * config["threads_per_row"] * config["cluster_n"]))',
            f"    fits = threads % 32 == 0 and threads <= 1024 and vec * chunks <= {MAX_VALUES}",
            '    return fits and config["cluster_n"] <= config["threads_per_row"]',
            "",
        ]

    def _launch(self) -> list[str]:
        tensors = [f"{name}: cute.Tensor" for name in (*self.inputs, *self.outputs)]
        head = signature("launch", [*tensors, "stream: cuda.CUstream", *constexprs(self.config)])
        used = [self.inputs[i] for i in self.used] + list(self.outputs)
        views = [f"    {variable('g', name)} = {self._view(name)}" for name in used]
        sizes = ["rows", "n", "width", "threads_per_row", "rows_per_block", "cluster_n"]
        arguments = ", ".join([*(variable("g", name) for name in used), *sizes])
        return [
            "@cute.jit",
            *head,
            f"    rows = {self.space.product(self.outer)}",
            f"    n = {self.space.product(self.graph.reduced)}",
            "    # Shapes are Python ints here: the widest vector that divides the row needs no scalar tail.",
            "    width = math.gcd(n, vec)",
            *views,
            f"    row_kernel({arguments}).launch(",
            "        grid=[(rows + rows_per_block - 1) // rows_per_block * cluster_n, 1, 1],",
            "        block=[threads_per_row * rows_per_block, 1, 1],",
            "        cluster=[cluster_n, 1, 1] if cutlass.const_expr(cluster_n > 1) else None,",
            "        stream=stream,",
            "    )",
        ]

    def _view(self, name: str) -> str:
        """Text of a tensor seen as (values of a vector, vectors of a row, rows), or (rows) with one value a row."""
        dims, along = self._dims(name)
        shape, stride = self.space.outer_mode(name, dims, self.outer, "rows")
        if not along:
            return f"cute.make_tensor({name}.iterator, cute.make_layout({shape}, stride={stride}))"
        return (
            f"cute.make_tensor(\n        {name}.iterator, cute.make_layout((width, n // width, {shape}), "
            f"stride=(1, width, {stride}))\n    )"
        )

    def _dims(self, name: str) -> tuple[tuple[int | None, ...], bool]:
        if name in self.outputs:
            output = self.graph.outputs[self.outputs.index(name)]
            dims = output.dims
        else:
            tensor = self.inputs.index(name)
            dims = next(load.dims for _, load in self.graph.loads() if load.tensor == tensor)
        return dims, dims[self.graph.reduced[-1]] is not None

    # --- the kernel ---

    def _kernel(self) -> list[str]:
        used = [self.inputs[i] for i in self.used] + list(self.outputs)
        constants = ("rows", "n", "vec", "threads_per_row", "rows_per_block", "cluster_n")
        parameters = [f"{variable('g', name)}: cute.Tensor" for name in used]
        head = signature("row_kernel", [*parameters, *(f"{name}: cutlass.Constexpr" for name in constants)])
        body = self._prologue() + self._loads() + self._passes() + self._stores()
        return ["@cute.kernel", *head, *(f"    {line}" if line else "" for line in body)]

    def _prologue(self) -> list[str]:
        reductions = self._reductions()
        lines = [
            "tidx, _, _ = cute.arch.thread_idx()",
            "bidx, _, _ = cute.arch.block_idx()",
            "lane = tidx % threads_per_row",
            "row = bidx // cluster_n * rows_per_block + tidx // threads_per_row",
            "# Threads past the last row work on it too, and store nothing: barriers stay uniform.",
            "source_row = cutlass.min(row, rows - 1)",
            "vectors = n // vec",
            "stride = threads_per_row * cluster_n  # vectors of a row that are loaded at once",
            "chunks = (vectors + stride - 1) // stride",
            "rank = 0  # of this block among those that share its rows",
            "if cutlass.const_expr(cluster_n > 1):",
            "    rank = cute.arch.block_idx_in_cluster()",
            "first = rank * threads_per_row + lane",
            "mine = cute.make_layout((vec, chunks))  # a thread's share of the row",
            "",
            "smem = cutlass.utils.SmemAllocator()",
            "warps = max(threads_per_row // 32, 1)",
            "partials = cute.make_layout((rows_per_block, warps), stride=(warps, 1))",
        ]
        for index in reductions:
            lines.append(f"buffer{reductions.index(index)} = smem.allocate_tensor(Float32, partials, 16)")
        count = len(reductions)
        lines += [
            "if cutlass.const_expr(cluster_n > 1):",
            "    sent = cute.make_layout((cluster_n, rows_per_block))",
            *(f"    parts{i} = smem.allocate_tensor(Float32, sent, 16)" for i in range(count)),
            f"    arrived = smem.allocate_array(cutlass.Int64, num_elems={count})",
            "    if tidx == 0:",
            *(f"        cute.arch.mbarrier_init(arrived + {i}, 1)" for i in range(count)),
            "    cute.arch.mbarrier_init_fence()",
            "    cute.arch.cluster_arrive_relaxed()",
            "    cute.arch.cluster_wait()",
        ]
        return [*lines, ""]

    def _reductions(self) -> list[int]:
        return [i for i, node in enumerate(self.graph.nodes) if isinstance(node, Reduce)]

    def _loads(self) -> list[str]:
        vectors = [(i, load) for i, load in self.graph.loads() if self._dims(self.inputs[load.tensor])[1]]
        scalars = [(i, load) for i, load in self.graph.loads() if not self._dims(self.inputs[load.tensor])[1]]
        lines = []
        for tensor in dict.fromkeys(load.tensor for _, load in vectors):
            name = self.inputs[tensor]
            lines.append(f"{variable('r', name)} = cute.make_rmem_tensor(mine, {variable('g', name)}.element_type)")
        lines += [
            "if cutlass.const_expr(vectors % stride != 0):",
            *(
                f"    {variable('r', self.inputs[t])}.fill(0.0)"
                for t in dict.fromkeys(load.tensor for _, load in vectors)
            ),
            "for i in cutlass.range_constexpr(chunks):",
            "    column = i * stride + first",
            "    if column < vectors:",
        ]
        for tensor in dict.fromkeys(load.tensor for _, load in vectors):
            name = self.inputs[tensor]
            lines.append(
                f"        cute.autovec_copy({variable('g', name)}[None, column, source_row], "
                f"{variable('r', name)}[None, i])"
            )
        self.env: dict[int, str] = {}
        for index, load in scalars:
            name = self.inputs[load.tensor]
            lines.append(f"{name} = Float32({variable('g', name)}[source_row])")
            self.env[index] = name
        needs_columns = any(isinstance(node, Index) for node in self.graph.nodes)
        always = "" if needs_columns else "if cutlass.const_expr(vectors % stride != 0):"
        indent = "" if needs_columns else "    "
        lines += ["", "columns = None  # each value's position in the row, where it is asked for"]
        lines += [always] if always else []
        lines += [
            f"{indent}rColumn = cute.make_rmem_tensor(mine, Float32)",
            f"{indent}for i in cutlass.range_constexpr(chunks):",
            f"{indent}    for j in cutlass.range_constexpr(vec):",
            f"{indent}        rColumn[j, i] = Float32((i * stride + first) * vec + j)",
            f"{indent}columns = rColumn.load()",
            "",
        ]
        self.writer.index = "columns"
        for index, load in vectors:
            name = self.inputs[load.tensor]
            lines.append(f"{name} = {variable('r', name)}.load().to(Float32)")
            self.env[index] = name
        return lines

    def _passes(self) -> list[str]:
        lines: list[str] = []
        local: dict[int, str] = {}
        reductions = self._reductions()
        depths = self.graph.depths()
        suggested = dict(self.graph.names)
        for index in sorted(reductions, key=lambda i: (depths[i], i)):
            node = self.graph.nodes[index]
            assert isinstance(node, Reduce)
            lines += self.writer.assignments([node.args[0]], self.env, local)
            text, _ = self.writer.expression(node.args[0], self.env)
            if not self.graph.varies(node.args[0]):
                text = f"cute.full_like(rColumn.load(), {text})"
            neutral = number(NEUTRAL[node.op])
            wish = suggested.get(index, {"add": "total", "mul": "product", "max": "peak", "min": "least"}[node.op])
            name = self.writer.name(wish)
            lines.append(f"{name} = fold({text}, cute.ReductionOp.{node.op.upper()}, {neutral}, columns, n)")
            buffer = f"buffer{reductions.index(index)}"
            lines.append(f"{name} = row_reduce({name}, {buffer}, {_COMBINE[node.op]}, {neutral}, threads_per_row)")
            lines += [
                "if cutlass.const_expr(cluster_n > 1):",
                f"    {name} = cluster_reduce(",
                f"        {name}, parts{reductions.index(index)}, arrived + {reductions.index(index)}, rank, "
                f"{_COMBINE[node.op]}, threads_per_row, cluster_n",
                "    )",
            ]
            self.env[index] = name
        return lines

    def _stores(self) -> list[str]:
        lines: list[str] = []
        local: dict[int, str] = {}
        roots = [o.node for o in self.graph.outputs]
        lines += self.writer.assignments(roots, self.env, local)
        vectors, scalars = [], []
        for name, output, spec in zip(self.outputs, self.graph.outputs, self.problem.workload.outputs, strict=True):
            text, _ = self.writer.expression(output.node, self.env)
            wide = self._dims(name)[1]
            if wide:
                if not self.graph.varies(output.node):
                    first = next(i for i, load in self.graph.loads() if self._dims(self.inputs[load.tensor])[1])
                    text = f"cute.full_like({self.env[first]}, {text})"
                register = variable("r", name)
                lines.append(f"{register} = cute.make_rmem_tensor(mine, {variable('g', name)}.element_type)")
                lines.append(f"{register}.store(({text}).to({variable('g', name)}.element_type))")
                vectors.append(
                    f"            cute.autovec_copy({register}[None, i], {variable('g', name)}[None, column, row])"
                )
            else:
                scalars.append(f"        {variable('g', name)}[row] = {CUTE_TYPE[spec.dtype]}({text})")
        lines.append("if row < rows:")
        if vectors:
            lines += ["    for i in cutlass.range_constexpr(chunks):", "        column = i * stride + first",
                      "        if column < vectors:", *vectors]  # fmt: skip
        if scalars:
            lines += ["    if first == 0:", *scalars]
        return lines
