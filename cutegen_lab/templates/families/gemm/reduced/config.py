"""Which products with reductions of their rows one kernel serves, and with what."""

from __future__ import annotations

from math import prod

from cutegen_lab.core.candidate import Config
from cutegen_lab.templates.expr import Graph, Index, Pick, Reduce, Scan, Total
from cutegen_lab.templates.families.gemm import config as gemm
from cutegen_lab.templates.families.gemm.config import beyond_room, team_groups
from cutegen_lab.templates.families.gemm.reduced.steps import in_parts, steps
from cutegen_lab.templates.families.gemm.shape import products

NAME = "matrix product and row reduction"
DOMAINS = {
    **{name: values for name, values in gemm.DOMAINS.items() if name != "split_k"},
    "cluster_n": (1, 2, 3, 4, 6, 8),
}
KNOBS = {
    **{knob: why for knob, why in gemm.KNOBS.items() if knob[0] not in ("split_k", "cluster_n")},
    ("cluster_n", 1): "More blocks share a row: narrower tiles hold it, and each tile of the left operand serves more.",
    ("cluster_n", -1): "Fewer blocks share a row: fewer waits for each other, and clusters that fit more of the GPU.",
}
MOST_BLOCKS = 8  # of a cluster that every GPU with clusters takes
# Clusters of so many blocks at a time, as an H200 places them, one block a multiprocessor.
RESIDENT = {1: 132, 2: 66, 3: 39, 4: 30, 6: 17, 8: 15}


def matches(graph: Graph) -> bool:
    found = products(graph)
    reductions = [node for node in graph.nodes if isinstance(node, Reduce)]
    if found is None or not reductions or graph.reduced != found.n or len(graph.outputs) != 1:
        return False
    if any(isinstance(node, Index | Pick | Scan | Total) for node in graph.nodes) or len(found.pairs) > 1:
        return False
    if found.f32 or found.of_8_bits or not all(graph.varies(node.args[0]) for node in reductions):
        return False
    (output,) = graph.outputs
    along = [output.dims[d] for d in found.n]
    written = along != [None] * len(along)
    dense = not written or along[-1] == max(d for d in output.dims if d is not None)
    return written == graph.varies(output.node) and dense


def row_length(graph: Graph) -> int:
    return prod(graph.space[d] for d in graph.reduced)


def exchanged_bytes(values: int, consumers: int, epi_m: int, cluster_n: int) -> int:
    """Shared memory where the warps of a block's ``consumers`` (warpgroups) get ``values`` of each of their rows from
    every block, twice: one may be a step ahead of another."""
    return 2 * consumers * 4 * cluster_n * values * 16 * epi_m * 4 if cluster_n > 1 else 0


def room_for_exchange(graph: Graph, config: Config) -> int:
    groups = team_groups(config)
    teams = 2 if config["schedule"] == "pingpong" else 1
    values = max(len(step.folded) for step in steps(graph))
    return exchanged_bytes(values, teams * groups, int(config["tile_m"]) // (64 * groups), int(config["cluster_n"]))


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` is beyond; empty where it is feasible. A row lies in a tile, or in the tiles of a
    cluster; only what can be put together from parts may be wider."""
    found = products(graph)
    assert found is not None
    tile_n, cluster_m, cluster_n = (int(config[s]) for s in ("tile_n", "cluster_m", "cluster_n"))
    n, held = row_length(graph), tile_n * cluster_n
    if n > held and in_parts(graph) is False:
        return (
            f"rows of {n:,} in the tiles of a cluster, which hold {held:,} "
            f"({cluster_n} × {tile_n}, of {max(DOMAINS['cluster_n'])} × {max(DOMAINS['tile_n'])} at most)"
        )
    if cluster_m * cluster_n > MOST_BLOCKS:
        return f"a cluster of {cluster_m * cluster_n} blocks, of {MOST_BLOCKS} at most"
    return beyond_room(found, config, room_for_exchange(graph, config))
