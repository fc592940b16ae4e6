"""Which workloads a candidate is compiled for and checked on."""

from __future__ import annotations

from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Device

EMULATOR_BYTES = 1 << 28  # compulsory traffic the emulator executes in a few seconds
EMULATOR_FLOPS = 1 << 31


def affordable(workload: Workload, flops: int, device: Device) -> bool:
    """Whether ``device`` can execute ``workload`` in reasonable time (a GPU always can)."""
    small = workload.compulsory_bytes <= EMULATOR_BYTES and flops <= EMULATOR_FLOPS
    return device.kind == "cuda" or small


def beyond(problem: Problem, workload: Workload) -> str:
    """How large ``workload`` is beside what an emulator can afford."""
    size = f"{workload.compulsory_bytes / 2**20:,.0f} MiB of tensors, where {EMULATOR_BYTES >> 20} are affordable"
    if workload is problem.workload and problem.flops > EMULATOR_FLOPS:
        return f"{size}; {problem.flops:.2g} FLOPs, where {EMULATOR_FLOPS:.2g} are"
    return size


def select_workloads(problem: Problem, device: Device) -> tuple[Workload, ...]:
    """The workloads a check runs on ``device``: cheap ones first, then the analyst's own that it can afford."""
    main = problem.workload
    own = tuple(w for w in problem.workloads if affordable(w, problem.flops if w is main else 0, device))
    return problem.check_workloads + own
