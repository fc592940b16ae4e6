"""Which products the family serves; parameter domains, reasons to change a parameter, limits, the default config."""

from __future__ import annotations

from math import ceil

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.families.gemm.shape import Products, products
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.kernels.limits import skinny_matmul as limits
from cutegen_lab.templates.kernels.limits.skinny_matmul import MANY, MAX_SUMS, MOST, tile_of

NAME = "product with few rows"
DOMAINS = {
    "rows": (1, 2, 4, 8),
    "threads_n": (1, 2, 4, 8, 16, 32),
    "threads_k": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
    "loads": (1, 2, 4, 8),
    "cluster_k": (1, 2, 4, 8),
}
KNOBS = {
    ("rows", 1): "Twice the rows per thread: each load of the small operand serves twice as many products.",
    ("rows", -1): "Half the rows per thread: more threads share the large operand, with fewer registers each.",
    ("threads_n", 1): "Larger blocks, or wider accesses where the large operand lies along its rows.",
    ("threads_n", -1): "Smaller blocks, so that the last wave is finer.",
    ("threads_k", 1): "Twice the threads share a sum: more loads in flight if there are few rows.",
    ("threads_k", -1): "Half the threads share a sum: fewer partial sums to add.",
    ("loads", 1): "More loads in flight hide more of the memory's latency.",
    ("loads", -1): "Fewer registers per thread, so more warps per SM.",
    ("cluster_k", 1): "Twice the blocks share a sum: more SMs work if there are few blocks.",
    ("cluster_k", -1): "Half the blocks share a sum: fewer waits on other multiprocessors.",
}
_BLOCKS = 200  # number of blocks to reach: about three for every two SMs of an H200
_MANY_BLOCKS = 300


def matches(graph: Graph) -> bool:
    """Whether the graph is products with at most MOST rows or columns, of 16-bit or fp32 operands, with one output."""
    found = products(graph)
    if found is None or found.of_8_bits or graph.reduced or len(graph.outputs) != 1:
        return False
    return min(_sizes(graph, found)) <= MOST


def _sizes(graph: Graph, found: Products) -> tuple[int, int]:
    """(m, n) of the result."""
    m, n = 1, 1
    for d in found.m:
        m *= graph.space[d]
    for d in found.n:
        n *= graph.space[d]
    return m, n


def default_config(graph: Graph, workload: Workload) -> Config:
    """From measurements on an H200 (benchmarks/results/few_rows_on_gpu.json): 8 loads in flight per thread (16 on the
    tensor cores if the other operand has very few rows), and work for every thread. While there are too few blocks,
    more threads of a block, then more blocks of a cluster, share k. If there are many blocks, each takes more rows,
    since all read the small operand."""
    found = products(graph)
    assert found is not None
    m, n, k, batches = found.sizes(graph, workload)
    few, many = sorted((m, n))
    larges = found.rights if m <= n else found.lefts
    specs = [(workload.inputs[large.tensor], large.dims[-1] or 0) for large in larges]
    along_k = any(spec.stride[axis] == 1 for spec, axis in specs)
    wide = 16 // specs[0][0].dtype.itemsize
    tile = tile_of(few)
    tensor = not found.f32 and tile >= MANY
    if along_k:
        vectors = max(k // wide, 1)  # vectors in a row of k elements
        roomy = tensor and ceil(many / 32) * batches >= _MANY_BLOCKS
        threads_k = _power_of_2(min(vectors, max(vectors // 4, 16), 16 if roomy else 32 if tensor else 128))
        few_loads = roomy or (found.f32 and tile >= MANY)
        loads = _power_of_2(min(vectors // threads_k, 8 if tensor and tile <= 8 else 2 if few_loads else 4))
        threads_n = max(128 // threads_k, 8 if tensor else 1)
        config = {
            "rows": 2 if loads >= 4 else 4,
            "threads_n": min(threads_n, 32),
            "threads_k": threads_k,
            "loads": loads,
        }
        step = wide * loads
    else:
        config = {
            "rows": wide if tensor else min(wide, MAX_SUMS // tile),
            "threads_n": 8,
            "threads_k": 32 if found.f32 else 16,
            "loads": 2,
        }
        step = 8
    config["cluster_k"] = 1

    def blocks() -> int:
        return ceil(many / (config["rows"] * config["threads_n"])) * batches * config["cluster_k"]

    narrowest, most = (8 if tensor else 1), 512
    while along_k and blocks() < _BLOCKS and config["threads_k"] * step * 2 <= k:
        if config["threads_n"] > narrowest:
            config["threads_n"] //= 2
        elif config["threads_n"] * config["threads_k"] >= most:
            break
        config["threads_k"] *= 2
    while blocks() < _BLOCKS and config["cluster_k"] < 8 and config["threads_k"] * config["cluster_k"] * step * 2 <= k:
        config["cluster_k"] *= 2
    return dict(config)


def _power_of_2(most: int) -> int:
    """The largest power of 2 that is not above ``most``; 1 if ``most`` is smaller."""
    return 1 << (max(most, 1).bit_length() - 1)


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` exceeds; empty if it is feasible."""
    found = products(graph)
    assert found is not None
    return str(limits.why_not(config, min(_sizes(graph, found)), len(found.pairs), not found.f32))
