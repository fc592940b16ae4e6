"""Chooses a workload's draws and their order: all for a small one, the most informative for a larger one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from cutegen_lab.core.problem import Workload
from cutegen_lab.core.protocols import Device, Execution
from cutegen_lab.judge.draws.distributions import distributions
from cutegen_lab.judge.draws.float_tensors import takes_non_finite
from cutegen_lab.judge.draws.names import (
    ALL_TRUE,
    AROUND,
    ESSENTIAL,
    FULL_RANGE,
    HIDDEN,
    MIXED_ROWS,
    MOSAIC,
    OF_SIZE,
    ONE_SIDED,
    PATCHWORK,
)

EMULATED_INSTRUCTIONS = 200_000  # budget of warp instructions for all draws of a workload: a tenth of a second
BYTES_EACH = 8  # bytes that a warp instruction moves on average (honest kernels: 1 to 40)
# Maximum number of warp instructions for all draws of a small workload; honest kernels take up to 175 times the budget.
INSTRUCTION_LIMIT = 250 * EMULATED_INSTRUCTIONS
GPU_BYTES = 8 << 30  # budget of compulsory traffic for all draws of a workload on a GPU
MINIMAL_ON_GPU = 10
# Draws of an expensive workload: together they have every kind of number.
MINIMAL = ("normal", PATCHWORK, MOSAIC, FULL_RANGE)
_IF_ONLY_WORKLOAD = (HIDDEN, ONE_SIDED)  # more draws if there is no other workload
# One more draw if there are few outputs: each may depend on the whole input, where rows of another kind would hide an
# error.
_IF_FEW_OUTPUTS = ("offset below", ALL_TRUE)


def draws(workload: Workload, turn: int, turns: int, secret: float, tf32: bool = False) -> tuple[str, ...]:
    """Names of every draw of ``workload``: normal values first, then those required for a verdict.

    ``turn``: number of the workload, of ``turns``. If not all draws are affordable, consecutive workloads leave out
    different ones. Means are spread over a whole trial, and small sizes too, early on each workload. ``secret`` (0 to
    1) and ``tf32`` are those of the trial.
    """
    names = distributions(workload, turn, turns, secret, tf32)
    every = (*minimal_draws(workload), *MIXED_ROWS, *(_IF_ONLY_WORKLOAD if turns == 1 else ()))
    # Derived workloads start with draws of one kind, whose failures are clearer.
    telling = (*every, *ESSENTIAL) if not workload.derived else (*ESSENTIAL, *every)
    first = [name for name in dict.fromkeys(("normal", *telling)) if name in names]
    spread = [[name for name in names if name.startswith(start)] for start in (AROUND, OF_SIZE)]
    early = [name for pair in zip_longest(*spread[:: 1 if turn % 2 else -1]) for name in pair if name is not None]
    rest = [name for name in names if name not in {*first, *early}]
    start = 5 * turn % max(len(rest), 1)
    pairs = zip_longest([*rest[start:], *rest[:start]], early)
    return *first, *(name for pair in pairs for name in pair if name is not None)


def minimal_draws(workload: Workload) -> tuple[str, ...]:
    """The draws that every workload gets, which together hold every kind of number."""
    return (*MINIMAL, *_IF_FEW_OUTPUTS) if not takes_non_finite(workload) else MINIMAL


def required_draws(workload: Workload, names: Sequence[str], alone: bool = False) -> int:
    """Number of the draws ``names`` that each emulated kernel gets, by the problem's amount of work: if the kernel's
    own cost decided, a slow kernel would get only a few.

    A small workload gets all; a larger one at least zeros, large numbers, NaN and infinities, one more kind and one
    mean or small size; the analyst's own gets one draw that holds them all, or, if it is ``alone``, as many as a larger
    one.
    """
    if not workload.derived and not alone:
        always = minimal_draws(workload)
        return sum(name in always for name in names)
    least = _minimal_count(names) + sum(name in _IF_ONLY_WORKLOAD for name in names) * alone
    allowed = EMULATED_INSTRUCTIONS * BYTES_EACH // max(workload.nbytes, 1)
    return min(len(names), max(least, allowed))


def affordable_draws(
    workload: Workload, names: Sequence[str], device: Device, execution: Execution, alone: bool = False
) -> int:
    """Number of the draws ``names`` to run, given that the first took ``execution``: fewer than :func:`required_draws`
    if the emulated kernel is too slow to judge."""
    count = len(names)
    if device.kind == "cuda":
        return min(count, max(MINIMAL_ON_GPU, GPU_BYTES // max(workload.nbytes, 1)))
    spent = execution.counters.get("warp_instructions", 0.0)
    if spent == 0:
        return count
    wanted = min(count, max(required_draws(workload, names, alone), int(EMULATED_INSTRUCTIONS / spent)))
    return min(wanted, max(_minimal_count(names), int(INSTRUCTION_LIMIT / spent))) if workload.derived else wanted


def _minimal_count(names: Sequence[str]) -> int:
    return sum(name in (*MINIMAL, *ESSENTIAL, *MIXED_ROWS) for name in names) + 2
