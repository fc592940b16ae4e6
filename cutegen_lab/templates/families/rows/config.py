"""Which graphs the family serves; parameter domains, reasons to change a parameter, limits, the default config."""

from __future__ import annotations

import math

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.families.rows.online import in_one_walk
from cutegen_lab.templates.families.rows.skewed import run_of, skewed, width_of
from cutegen_lab.templates.frontend.expr import Elementwise, FullReduce, Graph, Reduce
from cutegen_lab.templates.kernels.limits import row_reduction as limits
from cutegen_lab.templates.kernels.limits.row_reduction import FEWEST, MAX_LOADS, MAX_VALUES

NAME = "row reduction"
DOMAINS = {
    "vec": (1, 2, 4, 8, 16),
    "threads_per_row": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
    "rows_per_block": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "cluster_n": (1, 2, 4, 8),
    "loads": (1, 2, 4, 8, 16, 32, MAX_LOADS),
}
KNOBS = {
    ("threads_per_row", -1): "Each thread keeps twice the loads in flight and the reductions cross half as many warps.",
    ("rows_per_block", 1): "Larger blocks: half as many to start, and one barrier serves two rows.",
    ("threads_per_row", 1): "Twice the threads share a row: half the work each, more warps to hide latency.",
    ("vec", 1): "Half as many memory instructions for the same bytes.",
    ("rows_per_block", -1): "Smaller blocks: barriers wait for fewer warps and the last wave is finer.",
    ("vec", -1): "Narrower accesses spread a row over more loads.",
    ("cluster_n", 1): "Twice the blocks share a row: half the work per thread, but exchanges between blocks.",
    ("cluster_n", -1): "Half the blocks share a row: fewer waits on other multiprocessors.",
    ("loads", 1): "More loads in flight, and fewer steps that read the row again.",
    ("loads", -1): "Fewer registers per thread, so more warps per SM; every reduction reads the row again, from L2.",
}
_RESIDENT_VALUES = {1024: 32, 512: 64}  # values that a thread holds without spilling, by threads per row
_ONE_BLOCK_BYTES = 48 << 10  # maximum bytes of a row that one block reads
# Bytes of a longer row for each block of a cluster; twice as many if only one input is kept.
_CLUSTER_SHARE_BYTES = 16 << 10
_SMS = 132  # SMs of an H200
_MANY_ROWS = 2 * _SMS  # number of rows from which blocks fill the GPU without clusters
# Number of blocks that read at the full rate: x / x.sum() of f32[4096, 4096] takes 262 µs with 8 blocks, and 54 µs in
# several kernels.
_MEMORY_BLOCKS = 50
_FULL_RATE_THREADS = 1 << 17  # threads with which an H200 reads at almost its full rate
_LONG_ROW = 1 << 13  # elements of a row above which a pass that two reductions share is split into steps
_STEP_THREADS = (128, 256, 512)  # threads per row for a shared pass in steps
_STEP_VALUES = 16  # values per thread in a step: few registers, so that more blocks hide latency
_MIN_STEPS = 15  # minimum number of steps per row for which larger blocks are faster
_MIN_STEP_USE = 0.96  # minimum fraction of the steps' elements that lie inside the row
# Maximum bytes of a row for which _STEP_THREADS[0] threads take twice _STEP_VALUES 4-byte values per step.
_LONG_BYTES = 128 << 10
_WAVES = 8  # multiple of _FULL_RATE_THREADS from which blocks start and end at different times
_L2_BYTES = 32 << 20  # the usable part of an H200's 50 MB


def matches(graph: Graph) -> bool:
    """Whether the graph reduces the last dimensions, without products and scans."""
    rank = len(graph.space)
    if not graph.reduced or graph.reduced[-1] != rank - 1 or any(graph.dots()) or any(graph.scans()):
        return False
    return not partly_written(graph) and _gathers_once_a_row(graph) and _totals_last(graph)


def _gathers_once_a_row(graph: Graph) -> bool:
    """Whether each gather has one value per row, and an index that depends on no reduction."""
    depths = graph.depths()
    return all(not graph.varies(index) and depths[index] == 0 for index, _ in graph.gathers())


def _totals_last(graph: Graph) -> bool:
    """Whether no value of a row depends on a full reduction."""
    late, single = graph.late(), graph.single()
    return all(
        not late[node.args[0]] if isinstance(node, FullReduce) else isinstance(node, Elementwise) and single[index]
        for index, node in enumerate(graph.nodes)
        if late[index]
    )


def partly_written(graph: Graph) -> bool:
    """Whether a result has some but not all reduced dimensions."""
    return any(len({output.dims[d] is None for d in graph.reduced}) > 1 for output in graph.outputs)


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors; about four vectors per thread and no idle threads; full warps in a block.

    A row too long for one block is shared by a cluster, so that it is read once. A row too long for a cluster is read
    in steps, by the fewest blocks for which L2 holds the rows in progress. If a row is read only once, nothing is kept
    in registers, and blocks share a row only if there are few rows. Few rows get more threads each.
    """
    n, rows = _extent(graph)
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    widest = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    vec = width_of(graph, widest)
    stepwise = _walks(graph) == 1 and in_one_walk(graph) is not None and n > _LONG_ROW
    cluster_n = 1
    if n * itemsize > _ONE_BLOCK_BYTES and (_walks(graph) > 1 or rows < (_SMS if stepwise else _MANY_ROWS)):
        share = 2 * _CLUSTER_SHARE_BYTES if _walks(graph) > 1 and _keeps_one_input(graph) else _CLUSTER_SHARE_BYTES
        cluster_n = next((c for c in DOMAINS["cluster_n"] if n * itemsize <= share * c), DOMAINS["cluster_n"][-1])
    stepwise = stepwise and cluster_n == 1
    threads = _threads(-(-n // (vec * cluster_n)), vec, (4 if cluster_n == 1 else 8) * widest)
    if cluster_n == 1:
        threads = _threads_to_fill_gpu(rows, _threads_for_steps(rows, n, itemsize) if stepwise else threads, n)
    per_block = max((64 if _walks(graph) > 1 else 128) // threads, 1)
    while per_block > rows and per_block * threads > 32:
        per_block //= 2
    config = {"vec": widest, "threads_per_row": threads, "rows_per_block": per_block, "cluster_n": cluster_n}
    twice = itemsize >= 4 and n * itemsize <= _LONG_BYTES and threads == _STEP_THREADS[0]
    at_once = (2 if twice else 1) * _STEP_VALUES if stepwise else 4 * widest
    resident = _held(graph, config) <= (at_once if stepwise else _RESIDENT_VALUES.get(threads, MAX_VALUES))
    row_bytes = n * sum(t.dtype.itemsize for t in workload.inputs if t.numel >= n * rows)
    while not resident and _walks(graph) > 1 and _in_l2(row_bytes, config["cluster_n"] // 2):
        config["cluster_n"] //= 2
    return {**config, "loads": MAX_LOADS if resident else at_once // vec}


def _extent(graph: Graph) -> tuple[int, int]:
    """(length of a row, number of rows)."""
    n = math.prod(graph.space[d] for d in graph.reduced)
    return n, math.prod(graph.space) // max(n, 1)


def slowness(graph: Graph, workload: Workload) -> float:
    """Estimated ratio: time with the default config's number of blocks / time with enough blocks to read at the full
    rate."""
    config = default_config(graph, workload)
    _, rows = _extent(graph)
    blocks = -(-rows // int(config["rows_per_block"])) * int(config["cluster_n"])
    return max(_MEMORY_BLOCKS / max(blocks, 1), 1.0)


def _keeps_one_input(graph: Graph) -> bool:
    """Whether one input is all that a thread keeps of a row. It is not if exponentials are summed but not written
    (log-softmax): they are kept in registers too."""
    users = graph.users()
    beside = any(
        isinstance(node, Reduce)
        and isinstance(taken := graph.nodes[node.args[0]], Elementwise)
        and taken.op == "exp"
        and users[node.args[0]] == 1
        for node in graph.nodes
    )
    return not beside and sum(load.dims[graph.reduced[-1]] is not None for _, load in graph.loads()) == 1


def _threads_for_steps(rows: int, n: int, itemsize: int) -> int:
    """Threads per row for a pass in steps: more for 2-byte elements if there are so few rows that all blocks start and
    end together."""
    threads = _STEP_THREADS[0]
    for more in _STEP_THREADS[1:] if itemsize < 4 else ():
        steps = n / (more * _STEP_VALUES)
        even = steps >= _MIN_STEPS and steps >= _MIN_STEP_USE * math.ceil(steps)
        if rows * threads >= _WAVES * _FULL_RATE_THREADS or not even:
            break
        threads = more
    return threads


def _threads_to_fill_gpu(rows: int, threads: int, n: int) -> int:
    """``threads``, doubled while the GPU is not full and each thread keeps at least 8 elements."""
    while rows * threads < _FULL_RATE_THREADS and n >= 16 * threads and threads < DOMAINS["threads_per_row"][-1]:
        threads *= 2
    return threads


def _threads(vectors: int, vec: int, wanted: int) -> int:
    """Number of threads for ``vectors`` vectors of a row in a block: their shares are almost equal, about ``wanted``
    values."""
    if vectors <= 4 * FEWEST:
        return next(t for t in DOMAINS["threads_per_row"] if vectors <= t * (1 if t < FEWEST else 4))

    def idle_and_far(threads: int) -> tuple[float, float]:
        each = -(-vectors // threads)
        return max(each * threads / vectors - 1.05, 0.0), abs(math.log2(each * vec / wanted))

    fitting = [
        t for t in DOMAINS["threads_per_row"]
        if t >= FEWEST and -(-vectors // t) * vec <= _RESIDENT_VALUES.get(t, MAX_VALUES)
    ]  # fmt: skip
    return min(fitting, key=idle_and_far, default=DOMAINS["threads_per_row"][-1])


def _walks(graph: Graph) -> int:
    """Number of times that a row is read if it does not stay in registers."""
    written = any(graph.varies(output.node) for output in graph.outputs)
    return max(graph.depths()) - (in_one_walk(graph) is not None) + written


def _in_l2(row_bytes: int, cluster_n: int) -> bool:
    """Whether the rows in progress on an H200 stay in L2 until they are read again."""
    return cluster_n > 0 and row_bytes * (_SMS // cluster_n) <= _L2_BYTES


def _held(graph: Graph, config: Config) -> int:
    """Values of a row that one thread holds."""
    held: int = limits.share_of(config, *_row(graph)) * width_of(graph, int(config["vec"]))
    return held


def _row(graph: Graph) -> tuple[int, int, bool]:
    """Arguments of the limits: row length, length of its innermost part with a single stride, whether a row may start
    inside a vector."""
    return _extent(graph)[0], math.prod(graph.space[d] for d in run_of(graph)), skewed(graph)


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` exceeds; empty if it is feasible."""
    reason: str = limits.why_not(config, *_row(graph), False)
    return reason
