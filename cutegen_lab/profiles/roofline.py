"""A run's candidates under the ceilings of its GPU (Williams, Waterman and Patterson 2009)."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.perfmodel.cost_terms import l2_bytes_per_s
from cutegen_lab.profiles.plot_data import by_candidate, counters, of_the_problem, time_of
from cutegen_lab.profiles.records import Ceiling, RooflinePoint
from cutegen_lab.profiles.row import Row

_ROOM = 4.0  # factor by which the axes reach beyond the outermost point


def records(rows: Sequence[Row], gpu: GpuSpec) -> list[Ceiling | RooflinePoint]:
    """Ceilings and points; nothing without a point."""
    found = points(rows)
    return [*ceilings(rows, gpu), *found] if found else []


def window(shown: Sequence[Ceiling | RooflinePoint]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ranges of a plot's axes: (operations per byte, operations per second)."""
    points = [record for record in shown if isinstance(record, RooflinePoint)]
    rates = [c.operations_per_s for c in shown if isinstance(c, Ceiling) and c.operations_per_s]
    widths = [c.bytes_per_s for c in shown if isinstance(c, Ceiling) and c.bytes_per_s]
    at = [*(p.intensity for p in points), *(rate / width for rate in rates for width in widths)]
    return (min(at) / _ROOM, max(at) * _ROOM), (min(p.operations_per_s for p in points) / _ROOM, max(rates) * 2)


def points(rows: Sequence[Row]) -> list[RooflinePoint]:
    """Two points for each candidate with a time and counters: by its compulsory bytes, and by the bytes that it
    moved."""
    matrix = of_the_problem(rows, "matrix_operations")
    compulsory = of_the_problem(rows, "compulsory_bytes")
    found = []
    for candidate, own in by_candidate(rows).items():
        counted, time = counters(own, candidate), time_of(own, candidate)
        operations = matrix + 32 * counted.get("warp_instructions_f32", 0.0)
        if time is None or not time[0] or not operations:
            continue
        time_us, basis = time
        rate = operations / time_us * 1e6
        for name, nbytes in (("compulsory", compulsory), ("moved", counted.get("moved_bytes", 0.0))):
            if nbytes:
                found.append(RooflinePoint(candidate, name, operations / nbytes, rate, time_us, basis))  # type: ignore[arg-type]
    return found


def ceilings(rows: Sequence[Row], gpu: GpuSpec) -> list[Ceiling]:
    """DRAM by the datasheet, L2 by the time model, the fp32 units, and tensor cores if the problem has matrix
    operations. An fp32 instruction counts as one operation per lane in this plot and as two in the datasheet, so the
    fp32 ceiling is half of the datasheet's rate."""
    bulk = any(row.metric == "bulk_load_bytes" and row.value for row in rows)
    l2 = l2_bytes_per_s(gpu, bulk)
    found = [
        Ceiling(f"DRAM {gpu.dram_bytes_per_s / 1e12:.3g} TB/s", None, gpu.dram_bytes_per_s),
        Ceiling(f"L2 {l2 / 1e12:.3g} TB/s{', bulk copies' if bulk else ''} (model)", None, l2),
        Ceiling(f"fp32 units {gpu.flops[DType.F32] / 2e12:.3g} T/s", gpu.flops[DType.F32] / 2, None),
    ]
    if compute_us := of_the_problem(rows, "speed_of_light_compute"):
        peak = of_the_problem(rows, "matrix_operations") / compute_us * 1e6
        found.append(Ceiling(f"tensor cores {peak / 1e12:.3g} T/s", peak, None))
    return found
