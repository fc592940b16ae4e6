"""Which rows the family serves, and with what: domains, what each parameter is moved for, limits, the default."""

from __future__ import annotations

import math

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.families.rows.online import in_one_walk
from cutegen_lab.templates.families.rows.skewed import run_of, skewed, width_of
from cutegen_lab.templates.frontend.expr import Elementwise, FullReduce, Graph, Reduce
from cutegen_lab.templates.kernels.rules import row_reduction as rules
from cutegen_lab.templates.kernels.rules.row_reduction import FEWEST, MAX_LOADS, MAX_VALUES

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
    ("threads_per_row", 1): "Twice the threads share a row: half the work each, more warps to hide waits.",
    ("vec", 1): "Half as many memory instructions for the same bytes.",
    ("rows_per_block", -1): "Smaller blocks: barriers wait for fewer warps and the last wave is finer.",
    ("vec", -1): "Narrower accesses spread a row over more loads.",
    ("cluster_n", 1): "Twice the blocks share a row: half the work a thread, reductions over distributed memory.",
    ("cluster_n", -1): "Half the blocks share a row: fewer waits on other multiprocessors.",
    ("loads", 1): "More loads in flight, and fewer steps that read the row again.",
    ("loads", -1): "Fewer registers a thread, so more warps an SM; every reduction reads the row again, from L2.",
}
_RESIDENT = {1024: 32, 512: 64}  # values that a thread of so many keeps without spilling
_ALONE = 48 << 10  # bytes of a row up to which one block reads it
_SHARE = 16 << 10  # bytes of a longer row that each block of a cluster reads, or twice as many of a row by itself
_SMS = 132  # an H200's multiprocessors
_MANY_ROWS = 2 * _SMS  # enough blocks without a cluster
_MEMORY_BLOCKS = 50  # read at the full rate: 8 take 262 µs for x / x.sum() of f32[4096, 4096], several kernels 54
_FULL = 1 << 17  # threads that an H200 takes to read at its full rate, nearly
_LONG = 1 << 13  # of a row that two reductions share one walk of: from here on in steps, by
_STEPPING = (128, 256, 512)  # threads, that have
_A_STEP = 16  # values each at once: more blocks than of rows in registers, and so more of their waits hidden
_STEPS = 15  # of a row, at least, if larger blocks are to pay
_FULL_STEPS = 0.96  # and so much of them not past its end
_LONG_BYTES = 128 << 10  # of a row of four-byte elements, up to which the fewest threads take steps twice as long
_WAVES = 8  # times as many threads as read at the full rate, that blocks begin and end at different times
_L2_BYTES = 32 << 20  # of its 50 MB, what one can count on


def matches(graph: Graph) -> bool:
    rank = len(graph.space)
    if not graph.reduced or graph.reduced[-1] != rank - 1 or any(graph.dots()) or any(graph.scans()):
        return False
    return not partly_written(graph) and _gathers_once_a_row(graph) and _totals_last(graph)


def _gathers_once_a_row(graph: Graph) -> bool:
    """What is indexed has one value a row, and the index is known before the row is."""
    depths = graph.depths()
    return all(not graph.varies(index) and depths[index] == 0 for index, _ in graph.gathers())


def _totals_last(graph: Graph) -> bool:
    """Nothing of a row waits for a total."""
    late, single = graph.late(), graph.single()
    return all(
        not late[node.args[0]] if isinstance(node, FullReduce) else isinstance(node, Elementwise) and single[index]
        for index, node in enumerate(graph.nodes)
        if late[index]
    )


def partly_written(graph: Graph) -> bool:
    """A result that has some but not all reduced dimensions."""
    return any(len({output.dims[d] is None for d in graph.reduced}) > 1 for output in graph.outputs)


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors; threads a row so that each has about four and none is idle; full warps in a block.

    A row too long for one block is shared by a cluster, so that it is read once; one too long for a cluster is walked
    in steps, by as many blocks as it takes for L2 to hold the rows at work. Where one walk is all there is, nothing
    needs to stay, and blocks share a row only if there are few rows. Few rows have more threads each.
    """
    n, rows = _extent(graph)
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    widest = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    vec = width_of(graph, widest)
    stepwise = _walks(graph) == 1 and in_one_walk(graph) is not None and n > _LONG
    cluster_n = 1
    if n * itemsize > _ALONE and (_walks(graph) > 1 or rows < (_SMS if stepwise else _MANY_ROWS)):
        share = 2 * _SHARE if _walks(graph) > 1 and _alone(graph) else _SHARE
        cluster_n = next((c for c in DOMAINS["cluster_n"] if n * itemsize <= share * c), DOMAINS["cluster_n"][-1])
    stepwise = stepwise and cluster_n == 1
    threads = _threads(-(-n // (vec * cluster_n)), vec, (4 if cluster_n == 1 else 8) * widest)
    if cluster_n == 1:
        threads = _filling(rows, _stepping(rows, n, itemsize) if stepwise else threads, n)
    per_block = max((64 if _walks(graph) > 1 else 128) // threads, 1)
    while per_block > rows and per_block * threads > 32:
        per_block //= 2
    config = {"vec": widest, "threads_per_row": threads, "rows_per_block": per_block, "cluster_n": cluster_n}
    twice = itemsize >= 4 and n * itemsize <= _LONG_BYTES and threads == _STEPPING[0]
    at_once = (2 if twice else 1) * _A_STEP if stepwise else 4 * widest
    resident = _held(graph, config) <= (at_once if stepwise else _RESIDENT.get(threads, MAX_VALUES))
    row_bytes = n * sum(t.dtype.itemsize for t in workload.inputs if t.numel >= n * rows)
    while not resident and _walks(graph) > 1 and _in_l2(row_bytes, config["cluster_n"] // 2):
        config["cluster_n"] //= 2
    return {**config, "loads": MAX_LOADS if resident else at_once // vec}


def _extent(graph: Graph) -> tuple[int, int]:
    """A row's length, and how many there are."""
    n = math.prod(graph.space[d] for d in graph.reduced)
    return n, math.prod(graph.space) // max(n, 1)


def slowness(graph: Graph, workload: Workload) -> float:
    """How many times longer than all of an H200's blocks those of the default config take to move the rows."""
    config = default_config(graph, workload)
    _, rows = _extent(graph)
    blocks = -(-rows // int(config["rows_per_block"])) * int(config["cluster_n"])
    return max(_MEMORY_BLOCKS / max(blocks, 1), 1.0)


def _alone(graph: Graph) -> bool:
    """Is one input all that a thread keeps of a row? Where a sum's exponentials are not what is written (log-softmax),
    they are in registers beside it."""
    users = graph.users()
    beside = any(
        isinstance(node, Reduce)
        and isinstance(taken := graph.nodes[node.args[0]], Elementwise)
        and taken.op == "exp"
        and users[node.args[0]] == 1
        for node in graph.nodes
    )
    return not beside and sum(load.dims[graph.reduced[-1]] is not None for _, load in graph.loads()) == 1


def _stepping(rows: int, n: int, itemsize: int) -> int:
    """More threads where the rows are so few that all begin and end at a time, and elements are of two bytes."""
    threads = _STEPPING[0]
    for more in _STEPPING[1:] if itemsize < 4 else ():
        steps = n / (more * _A_STEP)
        even = steps >= _STEPS and steps >= _FULL_STEPS * math.ceil(steps)
        if rows * threads >= _WAVES * _FULL or not even:
            break
        threads = more
    return threads


def _filling(rows: int, threads: int, n: int) -> int:
    """Twice as many threads a row, and again, while a GPU has room for them and they have a vector or two each."""
    while rows * threads < _FULL and n >= 16 * threads and threads < DOMAINS["threads_per_row"][-1]:
        threads *= 2
    return threads


def _threads(vectors: int, vec: int, wanted: int) -> int:
    """Threads for a block's ``vectors`` of a row: nearly all have as many, and close to ``wanted`` values."""
    if vectors <= 4 * FEWEST:
        return next(t for t in DOMAINS["threads_per_row"] if vectors <= t * (1 if t < FEWEST else 4))

    def idle_and_far(threads: int) -> tuple[float, float]:
        each = -(-vectors // threads)
        return max(each * threads / vectors - 1.05, 0.0), abs(math.log2(each * vec / wanted))

    fitting = [
        t for t in DOMAINS["threads_per_row"]
        if t >= FEWEST and -(-vectors // t) * vec <= _RESIDENT.get(t, MAX_VALUES)
    ]  # fmt: skip
    return min(fitting, key=idle_and_far, default=DOMAINS["threads_per_row"][-1])


def _walks(graph: Graph) -> int:
    """How often a row that does not stay in registers is read."""
    written = any(graph.varies(output.node) for output in graph.outputs)
    return max(graph.depths()) - (in_one_walk(graph) is not None) + written


def _in_l2(row_bytes: int, cluster_n: int) -> bool:
    """Do the rows that an H200 works on at a time stay in L2 until they are read again?"""
    return cluster_n > 0 and row_bytes * (_SMS // cluster_n) <= _L2_BYTES


def _held(graph: Graph, config: Config) -> int:
    """Values of a row that are one thread's share."""
    held: int = rules.share_of(config, *_row(graph)) * width_of(graph, int(config["vec"]))
    return held


def _row(graph: Graph) -> tuple[int, int, bool]:
    """What the rules go by: a row's length, how much of it one stride leads through, may it begin inside a vector?"""
    return _extent(graph)[0], math.prod(graph.space[d] for d in run_of(graph)), skewed(graph)


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` is beyond; empty where it is feasible."""
    reason: str = rules.why_not(config, *_row(graph), False)
    return reason
