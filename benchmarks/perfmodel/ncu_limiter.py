"""What limits a kernel by Nsight Compute's metrics, and whether a predicted limiter says the same.

The rule was written down before any of ``foreign_cases`` was profiled. ncu's own (sections "GPU Speed Of Light
Throughput" and "Warp State Statistics") calls a unit at 80% of its peak the limiter, and a kernel none of whose units
is at 60% bound by latency, for which the state in which warps spend most of their time says why. So a predicted limiter
is right if it names the busiest unit (at 60% or more), or what warps wait for most (while no unit is at 80%).

One thing was changed when the profiles were there: which unit of the memory it is. ``lts__throughput`` counts more than
bandwidth (87% where a kernel waits for a DRAM at 75%); ncu's own "Memory Throughput" leaves that out, and is DRAM's
percentage wherever DRAM is its largest part. So DRAM, L2 or L1 is the unit whose percentage ncu's is. And one was
missing until the kernels of ``foreign_kernels/blind`` had been profiled: load/store units are what ncu calls L1's.

ncu has no word for a launch that ends no sooner than its blocks can be handed out, one after another: its states are
those of resident warps, and no unit is busy while multiprocessors wait for blocks. So the share of right limiters is
reported with such launches, where they count as wrong, and without (:func:`has_word`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

BUSY, SATURATED = 60.0, 80.0  # percent of a unit's peak
MEMORY, _SAME = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 2.0
_PERCENT = ".avg.pct_of_peak_sustained_elapsed"
UNITS: Mapping[str, tuple[str, ...]] = {  # the busiest of its metrics counts
    "DRAM": ("gpu__dram_throughput", "dram__throughput"),
    "L2": ("lts__throughput",),
    "L1": ("l1tex__throughput", "l1tex__data_pipe_lsu_wavefronts", "l1tex__lsuin_requests"),
    "tensor": (
        "sm__pipe_tensor_cycles_active", "sm__pipe_tensor_op_hmma_cycles_active",
        "sm__pipe_tensor_op_gmma_cycles_active",
        "sm__inst_executed_pipe_tensor_op_gmma",
    ),
    "instructions": (
        "sm__inst_issued", "sm__issue_active", "sm__pipe_alu_cycles_active", "sm__pipe_fma_cycles_active",
        "sm__inst_executed_pipe_alu", "sm__inst_executed_pipe_fma", "sm__inst_executed_pipe_xu",
        "sm__inst_executed_pipe_lsu", "sm__throughput",
    ),
}  # fmt: skip
_STALLED, _A_CYCLE = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
STALLS = (
    "barrier", "branch_resolve", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "selected",
    "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
_NO_STALLS = ("selected", "not_selected")  # of a warp that issues, or could
METRICS = (
    "gpu__time_duration.sum", "sm__cycles_elapsed.max", "l1tex__data_pipe_lsu_wavefronts.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "sm__warps_active.avg.pct_of_peak_sustained_active",
    *(name + _PERCENT for names in UNITS.values() for name in names),
    *(_STALLED + reason + _A_CYCLE for reason in STALLS),
)  # fmt: skip
_OURS: tuple[tuple[str, frozenset[str]], ...] = (  # how a predicted limiter begins -> what ncu may call that
    ("at the floor", frozenset({"DRAM"})),
    ("memory bandwidth", frozenset({"DRAM"})),
    ("L2 bandwidth", frozenset({"L2"})),
    ("L1", frozenset({"L1", "lg_throttle", "mio_throttle"})),
    ("load/store units", frozenset({"L1", "lg_throttle", "mio_throttle"})),
    ("shared memory", frozenset({"L1", "mio_throttle", "short_scoreboard"})),
    ("tensor cores", frozenset({"tensor", "gmma", "math_pipe_throttle"})),
    ("instruction issue of few warps", frozenset({"wait", "short_scoreboard", "mio_throttle", "instructions"})),
    ("instruction issue", frozenset({"instructions"})),
    ("conversions", frozenset({"instructions", "math_pipe_throttle"})),
    ("dependent instructions", frozenset({"wait", "short_scoreboard"})),
    ("memory latency", frozenset({"long_scoreboard"})),
    ("bulk copies", frozenset({"long_scoreboard", "sleeping"})),
    ("cluster waits", frozenset({"barrier", "membar", "sleeping"})),
    ("barriers", frozenset({"barrier"})),
    ("block starts", frozenset({"drain", "no_instruction", "imc_miss"})),
    ("launch overhead", frozenset({"drain", "no_instruction", "imc_miss"})),
)


@dataclass(frozen=True)
class Seen:
    """``percent`` of its peak that the busiest ``unit`` reached; the state ``stall`` held ``share`` of the warps' time
    that was no issuing (empty and 0 where ncu reported none)."""

    unit: str
    percent: float
    stall: str
    share: float

    @property
    def answers(self) -> frozenset[str]:
        """What may rightly be called the limiter."""
        found = {self.unit} if self.percent >= BUSY else set()
        return frozenset(found | ({self.stall} if self.percent < SATURATED and self.stall else set()))


def seen(values: Mapping[str, float]) -> Seen:
    """``values``: metrics of one launch by ncu's names."""
    percents = {unit: max(values.get(n + _PERCENT, 0.0) for n in names) for unit, names in UNITS.items()}
    if memory := values.get(MEMORY):
        part = next((u for u in ("DRAM", "L2") if abs(percents[u] - memory) <= _SAME), "L1")
        percents |= {"DRAM": 0.0, "L2": 0.0, "L1": 0.0, part: memory}
    if percents["tensor"] >= 0.9 * percents["instructions"]:  # "sm__throughput" has the tensor cores' too
        percents["instructions"] = 0.0
    unit = max(percents, key=percents.__getitem__)
    stalls = {r: values.get(_STALLED + r + _A_CYCLE, 0.0) for r in STALLS if r not in _NO_STALLS}
    stall = max(stalls, key=stalls.__getitem__)
    total = sum(stalls.values())
    return Seen(unit, percents[unit], stall if total else "", stalls[stall] / total if total else 0.0)


def has_word(limiter: str, of: Seen) -> bool:
    """Whether ncu could name what a predicted ``limiter`` names: it has units and warps, not the handing out of
    blocks."""
    return of.percent >= BUSY or not limiter.startswith("block starts: too many small blocks")


def agrees(limiter: str, of: Seen) -> bool:
    """Whether a predicted ``limiter``, in the words of :mod:`cutegen_lab.perfmodel.limiter`, is what ncu has."""
    named = limiter.partition("; ")[2] if limiter.startswith("tail") else limiter
    ours = next((names for start, names in _OURS if named.startswith(start)), frozenset({"instructions"}))  # "… units"
    return bool(ours & of.answers)
