"""Which matrix products with row reductions one kernel serves; parameter domains and limits."""

from __future__ import annotations

from math import prod

from cutegen_lab.core.candidate import Config
from cutegen_lab.templates.families.gemm import config as gemm
from cutegen_lab.templates.families.gemm.reduced.steps import in_parts, steps
from cutegen_lab.templates.families.gemm.shape import products
from cutegen_lab.templates.frontend.expr import FullReduce, Gather, Graph, Reduce, ReducedIota, Scan
from cutegen_lab.templates.kernels.limits import gemm_sm90 as limits

NAME = "matrix product and row reduction"
DOMAINS = {
    **{name: values for name, values in gemm.DOMAINS.items() if name != "split_k"},
    "cluster_n": (1, 2, 3, 4, 6, 8),
}
KNOBS = {
    **{knob: why for knob, why in gemm.KNOBS.items() if knob[0] not in ("split_k", "cluster_n")},
    ("cluster_n", 1): "More blocks share a row: narrower tiles hold it, and each load of a left tile serves more.",
    ("cluster_n", -1): "Fewer blocks share a row and wait for each other; smaller clusters leave fewer SMs idle.",
}


def matches(graph: Graph) -> bool:
    """Whether the graph is one product of 16-bit operands and reductions over all of n, with one output."""
    found = products(graph)
    reductions = [node for node in graph.nodes if isinstance(node, Reduce)]
    if found is None or not reductions or graph.reduced != found.n or len(graph.outputs) != 1:
        return False
    if any(isinstance(node, ReducedIota | Gather | Scan | FullReduce) for node in graph.nodes) or len(found.pairs) > 1:
        return False
    if found.f32 or found.of_8_bits or not all(graph.varies(node.args[0]) for node in reductions):
        return False
    (output,) = graph.outputs
    along = [output.dims[d] for d in found.n]
    written = along != [None] * len(along)
    dense = not written or along[-1] == max(d for d in output.dims if d is not None)
    return written == graph.varies(output.node) and dense


def row_length(graph: Graph) -> int:
    """Elements in a row of the result."""
    return prod(graph.space[d] for d in graph.reduced)


def exchanged(graph: Graph) -> int:
    """Number of values of each row that the blocks of a cluster exchange together."""
    return max(len(step.folded) for step in steps(graph))


def settled(graph: Graph, config: Config) -> Config:
    """``config`` with at most the stages that fit."""
    teams = 2 if config["schedule"] == "pingpong" else 1
    places = limits.exchange_shape(
        config["tile_m"], config["cluster_n"], exchanged(graph), teams, limits.groups_of(config)
    )
    fit = int(limits.stages_of(config, "16 bits", (1, 1), 4 * prod(places)))
    return {**config, "stages": min(int(config["stages"]), max(fit, 2))}


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` exceeds; empty if it is feasible."""
    return str(limits.why_not_rows(config, row_length(graph), exchanged(graph), in_parts(graph) is not False))
