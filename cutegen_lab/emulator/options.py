"""How to run a plan, and how much of the machine that may take."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.emulator.order import Order

LANES = 8192  # in lockstep: enough to hide a dispatch, few enough that the registers stay in cache
BUDGET = 2_000_000  # instructions dispatched for one chunk
PLAN_BUDGET = 40_000_000  # … and for all launches: minutes
SECONDS = 120.0
CHUNK_COST = 100  # dispatches that setting up a chunk takes as long as
SHADOW_BYTES = 32 << 20
RACES_BYTES = 8 << 20


@dataclass(frozen=True)
class Options:
    """How to run.

    ``shadow``: track every written byte of shared memory, outputs and workspace and trap reads of the others. None:
    where outputs and workspace are together at most 32 MiB (``SHADOW_BYTES``), which every check workload is; above
    that only poison tells. ``sample_blocks`` runs at most about that many blocks of each launch, spread evenly over the
    grid in whole clusters, and scales the counters; its outputs are incomplete. ``order``: None is blocks by number.
    ``counting``: count memory accesses, which takes up to half of the time; without, there are no counters.
    ``races``: look for accesses that nothing orders. None: where all tensors together are at most 8 MiB
    (``RACES_BYTES``) and every block runs.

    ``budget`` instructions dispatched for one chunk, ``plan_budget`` for the plan and ``seconds`` end a run as a hang.
    """

    shadow: bool | None = None
    budget: int = BUDGET
    plan_budget: int = PLAN_BUDGET
    seconds: float = SECONDS
    lanes: int = LANES
    sample_blocks: int | None = None
    races: bool | None = None
    order: Order | None = None
    counting: bool = True
