"""How to run a plan, and limits of a run."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.emulator.execution_order import Order

# Lanes in lockstep: enough to hide a dispatch, few enough that the registers stay in cache.
LANES = 8192
BUDGET = 2_000_000  # instructions dispatched for a CTA batch, in addition to EACH
PLAN_BUDGET = 40_000_000  # instructions dispatched for all launches, in addition to EACH
EACH = 64  # further instructions per byte or FLOP of a thread's share; an honest kernel needs about eight
FEW_THREADS = 128  # minimum number of parallel threads assumed in the limit of a plan
BATCH_COST = 100  # time to set up a batch of CTAs, in dispatched instructions
RACES_BYTES = 8 << 20
# Maximum size of a tensor's access table if few clusters are watched; most of its pages are never touched.
RACE_TABLE_BYTES = 512 << 20
# For kernels whose blocks wait for each other, a whole CTA batch is checked for races, which is 3 to 8 times slower, if
# there are at least FEW_BATCHES batches or the tensors have together at most FEW_BYTES bytes.
FEW_BATCHES = 4
FEW_BYTES = 4 * RACES_BYTES


@dataclass(frozen=True)
class Options:
    """How to run a plan.

    ``shadow``: track every written byte of shared memory, outputs and workspace, and trap reads of other bytes; without
    it, such reads return poison. ``sample_blocks``: run about that many blocks of each launch in whole clusters, spread
    evenly over the grid (if ``order`` is shuffled: the first, the last and random others), and scale the counters;
    outputs are then incomplete. ``order``: None for blocks by number.
    ``counting``: count memory accesses, which takes up to half of the time; without it there are no counters.
    ``races``: race detection. None: everywhere if the problem's tensors (without the candidate's workspace) have
    together at most 8 MiB (``RACES_BYTES``) and every block runs; else only in the first ``watched`` clusters of one
    random CTA batch of each launch (by the order's ``clock``), or in all of that batch if blocks may wait for each
    other.

    A CTA batch that does not end within ``budget`` instructions plus an allowance for its work is a hang
    (:meth:`most`); so is a plan that exceeds ``plan_budget`` and its allowance. Time is not limited.
    ``hidden_addresses``: refuse kernels whose branches or results depend on addresses (:mod:`address_use`).
    ``record``: record a timeline of the first block of each launch (:mod:`recorder`).
    ``flops``: FLOPs of the problem's matrix products, for the allowance.
    """

    shadow: bool = True
    budget: int = BUDGET
    plan_budget: int = PLAN_BUDGET
    flops: int = 0
    lanes: int = LANES
    sample_blocks: int | None = None
    races: bool | None = None
    watched: int = 0
    order: Order | None = None
    counting: bool = True
    hidden_addresses: bool = True
    record: bool = False

    def most(self, tensor_bytes: int, threads: int) -> int:
        """Maximum number of instructions dispatched for one CTA batch of a launch of ``threads`` threads."""
        return self.budget + EACH * (tensor_bytes + self.flops) // max(threads, 1)

    def most_in_all(self, tensor_bytes: int) -> int:
        """Maximum number of instructions dispatched for the plan."""
        return self.plan_budget + EACH * (tensor_bytes + self.flops) // FEW_THREADS
