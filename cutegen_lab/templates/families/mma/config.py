"""Which products the family serves; parameter domains, reasons to change a parameter, limits."""

from __future__ import annotations

from math import prod

from cutegen_lab.core.candidate import Config
from cutegen_lab.templates.families.gemm.config import ORDER, TILES
from cutegen_lab.templates.families.gemm.shape import Products, products
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.kernels.limits import gemm_sm80 as limits

NAME = "matrix product by mma.sync"
DOMAINS = {
    "tile_m": (16, 32, 64, 128, 256),
    "tile_n": (32, 64, 128, 256),
    "tile_k": (32, 64),
    "stages": (2, 3, 4, 5, 6),
    "warps_m": (1, 2, 4),
    "warps_n": (1, 2, 4),
    "raster": ("m", "n"),
    "group": (1, 2, 4, 8, 16),
    "split_k": (1, 2, 4, 8, 16),
}
KNOBS = {
    **TILES,
    ("tile_k", 1): "Half as many steps along k, each with twice the products between its barriers.",
    ("tile_k", -1): "Twice as many stages fit: loads run further ahead.",
    ("stages", 1): "One more tile in flight hides more of the memory's latency.",
    ("stages", -1): "Fewer tiles in flight: less shared memory, so that more blocks fit on an SM.",
    ("warps_m", 1): "Twice the warps share a tile: half the sums per thread, more warps to hide latency.",
    ("warps_m", -1): "Half the warps: fewer shared-memory loads for the same products.",
    ("warps_n", 1): "Twice the warps share a tile: half the sums per thread, more warps to hide latency.",
    ("warps_n", -1): "Half the warps: fewer shared-memory loads for the same products.",
    **ORDER,
}


def matches(graph: Graph) -> bool:
    """Whether the graph is products of 16-bit or fp32 operands (and an epilogue) with one output."""
    found = products(graph)
    return found is not None and not found.of_8_bits and not graph.reduced and len(graph.outputs) == 1


def operands(found: Products) -> dict[str, int]:
    """Arguments of the limits about the stages in shared memory."""
    return {"lefts": len(found.lefts), "rights": len(found.rights), "itemsize": 4 if found.f32 else 2}


def limit_arguments(found: Products, smem_bytes: int, sms: int) -> dict[str, int | bool]:
    """Arguments of the limits about the products and the GPU: bytes of shared memory per block, number of SMs."""
    sums = {"pairs": len(found.pairs), "halved": found.halved}
    return {**operands(found), **sums, "smem_bytes": smem_bytes, "sms": sms}


def shared_bytes(found: Products, config: Config) -> int:
    """Bytes of shared memory of a block."""
    tile_shape_mnk = tuple(config[name] for name in ("tile_m", "tile_n", "tile_k"))
    return int(limits.shared_bytes(tile_shape_mnk, config["stages"], **operands(found)))


def why_not(graph: Graph, config: Config, smem_bytes: int, sms: int) -> str:
    """The limit that ``config`` exceeds on a GPU with ``smem_bytes`` of shared memory per block and ``sms`` SMs; empty
    if it is feasible."""
    found = products(graph)
    assert found is not None
    return str(limits.why_not(config, prod(graph.space), **limit_arguments(found, smem_bytes, sms)))
