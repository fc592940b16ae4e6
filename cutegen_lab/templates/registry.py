"""The families, in the order in which they are tried. To add one, write a :class:`Family` and list it here."""

from __future__ import annotations

from cutegen_lab.core.errors import NotCovered
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.roofline import GPUS, target_gpu
from cutegen_lab.templates.families import avg_pool2d, columns, elementwise, gemm, mma, rows, skinny, tf32, totals
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.gemm import reduced
from cutegen_lab.templates.families.scans import columns as column_scans
from cutegen_lab.templates.families.scans import rows as row_scans
from cutegen_lab.templates.frontend.expr import Graph

LAUNCH_BYTES = 8 << 20  # bytes that an H200 moves while one more kernel starts
_ARCHS = tuple(dict.fromkeys(gpu.arch for gpu in GPUS.values()))


class ServedElsewhere(NotCovered):
    """No family serves a graph on its arch, but one does on another arch."""


def families(arch: str) -> tuple[Family, ...]:
    """The families with kernels for ``arch``. Raises InputError if no GPU of that arch is known."""
    hopper = arch == "sm_90a"
    products = (gemm.FAMILY, tf32.FAMILY, reduced.FAMILY) if hopper else (mma.family(target_gpu(arch)),)
    by_memory = (totals, rows, columns, row_scans, column_scans, elementwise, avg_pool2d)
    return (skinny.FAMILY, *products, *(each.FAMILY for each in by_memory))


def family_for(graph: Graph, arch: str = "sm_90a") -> Family:
    """The first family that serves the graph. Raises ServedElsewhere or another ProviderError if none does, InputError
    if no GPU of that arch is known."""
    if (found := _serving(graph, arch)) is not None:
        return found
    if others := [other for other in _ARCHS if other != arch and _serving(graph, other) is not None]:
        raise ServedElsewhere(
            f"no template family serves {_computed(graph)} on {arch}, but one does on {', '.join(others)}",
            Hint(Advice.OTHER_ARCH, tuple(others)),
        )
    raise NotCovered(f"no template family serves {_hindrance(graph)}")


def _serving(graph: Graph, arch: str) -> Family | None:
    windows = any(graph.pools())
    return next((each for each in families(arch) if each.windows == windows and each.matches(graph)), None)


def pays(family: Family, graph: Graph, workload: Workload) -> bool:
    """Whether one kernel of ``family`` exceeds the time of its memory traffic by less than the start of a kernel."""
    return workload.compulsory_bytes * (family.slowness(graph, workload) - 1.0) < LAUNCH_BYTES


def _computed(graph: Graph) -> str:
    """Name of an operation that only some GPUs have kernels for."""
    if any(dot.f8 or dot.as_f16 for _, dot in graph.dots()):
        return "a matrix product of 8-bit floats"
    return _hindrance(graph)


def _hindrance(graph: Graph) -> str:
    if not graph.space:
        return "a computation of single numbers, which has no dimension to spread over threads"
    products = sum(1 for _ in graph.dots())
    if products > 1:
        return "several matrix products in one kernel"
    if products and graph.reduced:
        return "a reduction of a matrix product's result"
    if products and len(graph.outputs) > 1:
        return "several results of a matrix product"
    if products:
        return "a matrix product whose last dimension is one of its batches"
    return "this combination of broadcasting and reduction"
