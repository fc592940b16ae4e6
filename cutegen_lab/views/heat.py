"""What each line of a candidate's text costs, by column: the heat beside the source."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_lab.core.hot_lines import limiting
from cutegen_lab.core.predicted import WAITS, as_counters
from cutegen_lab.core.trial import Profile
from cutegen_lab.views.model import HeatColumn

_WAYS = ("global_load", "global_store", "global_atomic", "bulk_load", "bulk_store")
_LOADS = "; a load counts where its value is first used"  # the compiler moves loads there
_STALLS = "Predicted stall"
_COLUMNS: Mapping[str, tuple[str, tuple[str, ...]]] = {  # label -> unit and the counters it adds
    "Sectors": (f"sectors of 32 bytes of global memory{_LOADS}", tuple(f"{way}_sectors" for way in _WAYS)),
    "Bytes": (f"requested bytes of global memory{_LOADS}", tuple(f"{way}_bytes" for way in _WAYS)),
    "Wavefronts": ("shared-memory wavefronts", ("shared_wavefronts",)),
    "Conflicts": ("shared-memory wavefronts beyond those without bank conflicts", ("shared_conflicts",)),
    "Tensor": ("tensor operations", ("tensor_ops",)),
    "Instructions": ("warp instructions", ("warp_instructions",)),
    _STALLS: (
        f"predicted microseconds of waiting{_LOADS}; the busiest unit and the start of blocks belong to no line",
        tuple(as_counters({WAITS: 0.0})),
    ),
    "Waits": ("waits of warps at barriers", ("barrier_waits", "mbarrier_waits", "cluster_waits")),
}
_LIMITING = {  # counter of the limiting resource -> the column that shows it
    "moved_bytes": "Sectors", "shared_wavefronts": "Wavefronts", "tensor_ops": "Tensor", "barrier_waits": "Waits",
    "cluster_waits": "Waits", "warp_instructions": "Instructions",
}  # fmt: skip
_WAITING = ("latency", "bulk copies", "dependent")  # words in a limiter that mean waiting


def heat(profile: Profile | None) -> list[HeatColumn]:
    """A column for each resource that ``profile`` counts by line; the one that limits the kernel first."""
    if profile is None:
        return []
    found = []
    for label, (unit, counters) in _COLUMNS.items():
        by_line = {each.line: sum(each.counters.get(name, 0.0) for name in counters) for each in profile.lines}
        if total := sum(by_line.values()):
            lines = {line: value for line, value in by_line.items() if line > 0 and value}
            found.append(HeatColumn(label=label, unit=unit, total=total, lines=lines))
    waits = any(word in profile.limiter for word in _WAITING) and any(column.label == _STALLS for column in found)
    first = _STALLS if waits else _LIMITING.get(limiting(profile)[0], "")
    return sorted(found, key=lambda column: column.label != first)
