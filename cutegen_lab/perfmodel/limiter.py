"""Names the term that limits a launch's time, with its figure."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_lab.core import predicted
from cutegen_lab.core.predicted import AT_THE_FLOOR, L2, LAUNCH, LAUNCH_US, MEMORY, STARTS, WAITS
from cutegen_lab.perfmodel.cost_terms import PATH
from cutegen_lab.perfmodel.occupancy import Occupancy

_ALL = 1.05  # ratio of bytes moved to compulsory bytes up to which the kernel counts as moving compulsory bytes only
# Maximum ratio to the time of compulsory bytes and launch at which a kernel counts as at the floor: smaller differences
# are within the prediction's error.
_FLOOR = 1.08
_NAMES: Mapping[str, str] = {
    MEMORY: "memory bandwidth", L2: "L2 bandwidth", predicted.SPILLS: "L2 bandwidth: registers are spilled",
    LAUNCH: "launch overhead", "issue": "instruction issue",
    "tensor": "tensor cores", "shared": "shared memory", "L1": "L1: accesses touch many cache lines",
    PATH: "shared memory and L1, which share a data path",
    STARTS: "block starts: too many small blocks for the launch hardware",
    predicted.LOADS: "memory latency: too few loads in flight",
    predicted.ARRIVAL: "memory latency: a block's loads arrive while nothing else runs",
    predicted.STAGES: "bulk copies: products wait for stages", predicted.DEPENDENT: "dependent instructions",
    predicted.IN_ORDER: "instruction issue of few warps",
    predicted.BARRIERS: "barriers", predicted.CLUSTER: "cluster waits",
    predicted.BLOCK: "block starts: each block does little",
}  # fmt: skip
_FEW = "memory latency: few multiprocessors have a block, and each takes a limited rate from L2"
_ANSWERS = (predicted.LOADS, predicted.ARRIVAL, predicted.STAGES)
_NEARLY = 0.85  # fraction of the longest term from which a second term is named
# Fraction of DRAM's peak: Nsight Compute calls a kernel whose units are all below it bound by latency.
_BUSY = 0.6


def limiter(
    parts: Mapping[str, float], waited: Mapping[str, float], unit: str, counters: Mapping[str, float], shape: Occupancy,
    dram_share: float,
) -> str:  # fmt: skip
    """The longest of ``parts`` in words; if that is the part of the waits, the longest of ``waited``. If DRAM is at a
    small ``dram_share`` of its peak, memory bandwidth is not the limiter; latency is."""
    longest = max(parts, key=lambda name: parts[name])
    if longest == MEMORY and dram_share < _BUSY:
        most = max(_ANSWERS, key=lambda name: waited.get(name, 0.0))
        return f"{_NAMES[most]}; DRAM is at {dram_share:.0%} of its peak"
    if longest == L2 and 2 * parts.get(predicted.SPILLS, 0.0) > parts[L2]:
        longest = predicted.SPILLS
    elif longest == L2 and shape.waves * shape.blocks < 1:
        return f"{_FEW}, {parts[longest]:.3g} µs"
    if longest != WAITS:
        return f"{_named(longest, counters)}, {parts[longest]:.3g} µs"
    most = max(waited, key=lambda name: waited[name])
    name = _named(unit if most == predicted.WORK else most, counters)
    if shape.tail > 0.3:
        name = f"tail: the last wave of blocks is nearly empty; {name}"
    return f"{name}, {waited[most]:.3g} of {parts[WAITS]:.3g} µs that blocks take one after another"


def runner_up(parts: Mapping[str, float], waited: Mapping[str, float], unit: str, counters: Mapping[str, float]) -> str:
    """Part that takes nearly as long as the longest of ``parts``, in words; empty if none does."""
    names: dict[str, float] = {}  # longest term of each name
    for term in sorted(parts, key=lambda name: -parts[name]):
        most = max(waited, key=lambda name: waited[name]) if term == WAITS else term
        names.setdefault(_named(unit if most == predicted.WORK else most, counters), parts[term])
    (_, longest), (second, time_us) = list(names.items())[:2]
    if time_us < _NEARLY * longest:
        return ""
    return f"nearly as long, {time_us:.3g} µs: {second}; reducing only one of them gains little"


def at_the_floor(time_us: float, memory_us: float, copy_us: float, floor_us: float, dram_share: float) -> str:
    """The limiter in words if nothing is left to gain: memory moves only compulsory bytes, and everything else is
    hidden behind that; empty otherwise. ``copy_us``: time of the compulsory bytes at the copy rate; ``floor_us``: of a
    launch that only copies them, in as many waves."""
    if memory_us > _ALL * copy_us or time_us > _FLOOR * floor_us:
        return ""
    terms = f"memory {memory_us:.3g} µs + launch {LAUNCH_US:.3g} µs"
    if dram_share >= _BUSY:
        return f"{AT_THE_FLOOR}: {terms}"
    return (
        f"memory latency, {AT_THE_FLOOR}: {terms}; a launch this short ends with DRAM at {dram_share:.0%} of its peak"
    )


def _named(name: str, counters: Mapping[str, float]) -> str:
    if name in ("shared", PATH) and 2 * counters.get("shared_conflicts", 0.0) > counters.get("shared_wavefronts", 0.0):
        return "shared memory: bank conflicts"
    if name == "integer" and counters.get("warp_instructions_convert", 0.0) > counters.get(
        "warp_instructions_integer", 0.0
    ):
        return "conversions"
    return _NAMES.get(name, f"{name} units")
