"""How to run a plan, and how much of the machine that may take."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.emulator.execution_order import Order

LANES = 8192  # in lockstep: enough to hide a dispatch, few enough that the registers stay in cache
BUDGET = 2_000_000  # instructions dispatched until the blocks of a chunk end, whatever the work
PLAN_BUDGET = 40_000_000  # … and in all launches
EACH = 64  # instructions more for each byte or operation that a thread has to do: an honest one takes about eight
FEW_THREADS = 128  # least number that work at the same time, in the sum over all launches
CHUNK_COST = 100  # time to set up a batch of CTAs, in dispatched instructions
RACES_BYTES = 8 << 20
RACE_TABLE_BYTES = 512 << 20  # that remember a tensor's accesses where few clusters are watched: most is never touched
# Where blocks wait for each other, a whole chunk is watched, which takes 3 to 8 times as long: …
FEW_CHUNKS = 4  # … of so many or more,
FEW_BYTES = 4 * RACES_BYTES  # or where tensors are no larger


@dataclass(frozen=True)
class Options:
    """How to run.

    ``shadow``: track every written byte of shared memory, outputs and workspace and trap reads of the others; without,
    only poison tells. ``sample_blocks`` runs at most about that many blocks of each launch in whole clusters,
    spread evenly over the grid or, where ``order`` is shuffled, the first, the last and others at random, and scales
    the counters; its outputs are incomplete. ``order``: None is blocks by number.
    ``counting``: count memory accesses, which takes up to half of the time; without, there are no counters.
    ``races``: look for accesses that nothing orders. None: where the problem's tensors (a candidate's workspace does
    not count) are together at most 8 MiB (``RACES_BYTES``) and every block runs; elsewhere only in the first
    ``watched`` clusters of one chunk of each launch, drawn by the order's ``clock``, or where blocks may wait for each
    other in all of that chunk.

    A chunk whose blocks do not end within ``budget`` instructions, and what its threads' share of the work may take, is
    a hang (:meth:`most`); so is a plan that takes ``plan_budget`` and what its work may. Time is never a reason.
    ``hidden_addresses``: refuse kernels whose branches or results depend on addresses (:mod:`address_use`).
    ``record``: record what the first block of each launch does (:mod:`recorder`).
    ``flops``: the problem's, of matrix products; its bytes are those of the tensors.
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
        """Instructions that may be dispatched for the blocks of one chunk of a launch of ``threads``."""
        return self.budget + EACH * (tensor_bytes + self.flops) // max(threads, 1)

    def most_in_all(self, tensor_bytes: int) -> int:
        """… and for the plan."""
        return self.plan_budget + EACH * (tensor_bytes + self.flops) // FEW_THREADS
