"""How to run a plan, and limits of a run."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.emulator.execution_order import Order

# Lanes in lockstep: enough to hide a dispatch, few enough that the registers stay in cache.
LANES = 8192
BUDGET = 2_000_000  # instructions dispatched for a CTA batch, in addition to EACH
PLAN_BUDGET = 40_000_000  # … and for all launches
EACH = 64  # further instructions for each byte or operation of a thread; an honest kernel takes about eight
FEW_THREADS = 128  # least number of parallel threads assumed in the limit of a plan
BATCH_COST = 100  # time to set up a batch of CTAs, in dispatched instructions
RACES_BYTES = 8 << 20
RACE_TABLE_BYTES = 512 << 20  # access table of a tensor where few clusters are watched; most pages are never touched
# If blocks wait for each other, a whole CTA batch is checked for races, which is 3 to 8 times slower, if there
FEW_BATCHES = 4  # … are at least this many batches,
FEW_BYTES = 4 * RACES_BYTES  # or tensors have at most this size


@dataclass(frozen=True)
class Options:
    """How to run.

    ``shadow``: track every written byte of shared memory, outputs and workspace, and trap reads of other bytes; without
    it, such reads return poison. ``sample_blocks``: run about that many blocks of each launch in whole clusters, spread
    evenly over the grid (where ``order`` is shuffled: the first, the last and random others), and scale the counters;
    outputs are then incomplete. ``order``: None for blocks by number.
    ``counting``: count memory accesses, which takes up to half of the time; without it there are no counters.
    ``races``: race detection. None: if the problem's tensors (without the candidate's workspace) have together at most
    8 MiB (``RACES_BYTES``) and every block runs; else only in the first ``watched`` clusters of one random CTA batch of
    each launch (by the order's ``clock``), or in all of that batch if blocks may wait for each other.

    A CTA batch that does not end within ``budget`` instructions plus an allowance for its work is a hang
    (:meth:`most`); so is a plan that exceeds ``plan_budget`` and its allowance. Time is not limited.
    ``hidden_addresses``: refuse kernels whose branches or results depend on addresses (:mod:`address_use`).
    ``record``: record a timeline of the first block of each launch (:mod:`recorder`).
    ``flops``: of the problem's matrix products.
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
        """Instructions that may be dispatched for one CTA batch of a launch of ``threads`` threads."""
        return self.budget + EACH * (tensor_bytes + self.flops) // max(threads, 1)

    def most_in_all(self, tensor_bytes: int) -> int:
        """Instructions that may be dispatched for the plan."""
        return self.plan_budget + EACH * (tensor_bytes + self.flops) // FEW_THREADS
