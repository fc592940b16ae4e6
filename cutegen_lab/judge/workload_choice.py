"""Chooses the workloads a candidate is compiled for and checked on."""

from __future__ import annotations

from cutegen_lab.core.machine_memory import total_bytes
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Device

EMULATOR_BYTES = 1 << 28  # compulsory traffic the emulator executes in a few seconds
EMULATOR_FLOPS = 1 << 31
# Maximum FLOPs of a workload of which some blocks are checked: PyTorch computes its float64 reference in a minute.
SAMPLED_FLOPS = 1 << 40
_SHARE_OF_MEMORY = 0.75
MEMORY_FACTOR = 32  # memory of a draw divided by the compulsory bytes: 30 was measured for a row reduction of bf16


def can_execute(workload: Workload, flops: int, device: Device) -> bool:
    """Whether ``device`` can execute ``workload`` in reasonable time; always True for a GPU."""
    small = workload.nbytes <= EMULATOR_BYTES and flops <= EMULATOR_FLOPS
    return device.kind == "cuda" or small


def sampled_share(problem: Problem, workload: Workload) -> float:
    """Fraction of ``workload`` that an emulator can afford."""
    return min(EMULATOR_BYTES / workload.nbytes, EMULATOR_FLOPS / max(_flops(problem, workload), 1))


def why_no_reference(problem: Problem, workload: Workload) -> str:
    """Why PyTorch cannot compute the reference of ``workload`` on this machine; empty if it can."""
    memory = workload.nbytes * MEMORY_FACTOR
    if memory > (most := total_bytes() * _SHARE_OF_MEMORY):
        needed, usable = f"{memory / 2**30:.0f} GiB", f"{most / 2**30:.0f} GiB"
        return f"its float64 reference takes about {needed} of memory, more than the {usable} that may be used"
    if (flops := _flops(problem, workload)) > SAMPLED_FLOPS:
        return f"its float64 reference takes {flops:.2g} FLOPs, more than the affordable {SAMPLED_FLOPS:.2g}"
    return ""


def _flops(problem: Problem, workload: Workload) -> int:
    return problem.flops if workload is problem.workload else 0


def excess_size(problem: Problem, workload: Workload) -> str:
    """Size of ``workload`` compared with what an emulator can afford, in words."""
    size = f"{workload.nbytes / 2**20:,.0f} MiB of tensors (affordable: {EMULATOR_BYTES >> 20})"
    if (flops := _flops(problem, workload)) > EMULATOR_FLOPS:
        return f"{size}; {flops:.2g} FLOPs (affordable: {EMULATOR_FLOPS:.2g})"
    return size


def select_workloads(problem: Problem, device: Device) -> tuple[Workload, ...]:
    """Workloads to check on ``device``: cheap ones first, then those of the analyst that it can afford."""
    own = tuple(w for w in problem.workloads if can_execute(w, _flops(problem, w), device))
    return problem.check_workloads + own
