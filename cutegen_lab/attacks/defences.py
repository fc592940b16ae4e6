"""Names the defence behind a verdict, in words."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_lab.core.verdict import Verdict

_DEFENCES: Mapping[Verdict, str] = {
    Verdict.REJECTED_SOURCE: "the gate reads the text before anything runs it",
    Verdict.CONTRACT: "the candidate contract, checked in the cage and on the recording",
    Verdict.COMPILE_ERROR: "the cage: what it reaches for is not there",
    Verdict.COMPILE_TIMEOUT: "the cage's clock",
    Verdict.COMPILE_CRASH: "the cage's supervisor: an end without an answer, or an answer that makes no sense",
    Verdict.COMPILE_LIMIT: "the cage's limits on memory, processes, output and files",
    Verdict.HOST_READS_DATA: "tensors have no memory behind them while the launcher is recorded",
    Verdict.UNSTABLE_PLAN: "the launcher is recorded several times, at different addresses",
    Verdict.INVALID_PLAN: "every launch of the plan is checked before a device sees it",
    Verdict.UNSUPPORTED: "the device executes only what it knows",
    Verdict.OUT_OF_BOUNDS: "every access must lie within a tensor",
    Verdict.MISALIGNED: "every access must be aligned",
    Verdict.UNINITIALISED_READ: "every byte remembers whether this call has written it",
    Verdict.BARRIER_DIVERGENCE: "barriers are checked as they are met",
    Verdict.DEADLOCK: "a kernel in which nothing can go on is stopped",
    Verdict.HANG: "a budget of instructions that follows from the work, and on a GPU a watchdog",
    Verdict.LAUNCH_FAILURE: "the driver refuses the launch",
    Verdict.OUT_OF_MEMORY: "memory is counted before it is taken",
    Verdict.WRONG_RESULT: "fresh inputs from several distributions, compared with float64",
    Verdict.UNWRITTEN_OUTPUT: "outputs start poisoned, twice, with different bytes",
    Verdict.NON_DETERMINISTIC: "two runs on the same inputs, over other poison and in another order, must agree",
    Verdict.UNREAD_INPUT: "loads are counted, and must reach what the reference was seen to depend on",
    Verdict.INPUT_MODIFIED: "a store to an input is a fault, and inputs are compared before and after",
    Verdict.TOO_FAST: "no time may be less than the compulsory bytes take at the memory's peak",
    Verdict.INCONCLUSIVE: "the small workloads alone are no proof of the analyst's own",
}


def defence_of(verdict: Verdict) -> str:
    """The defence that caught a candidate with ``verdict``; empty if it passed."""
    return _DEFENCES.get(verdict, "")
