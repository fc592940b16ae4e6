"""Names the defence behind a verdict, in words."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_lab.core.verdict import Verdict

_DEFENCES: Mapping[Verdict, str] = {
    Verdict.REJECTED_SOURCE: "the gate reads the text before anything runs it",
    Verdict.PIN_BROKEN: "pinned lines are compared before anything is compiled",
    Verdict.CONTRACT: "the candidate contract, checked in the cage and on the recording",
    Verdict.COMPILE_ERROR: "the cage: what the candidate tries to use is not available",
    Verdict.COMPILE_TIMEOUT: "the cage's time limits",
    Verdict.COMPILE_CRASH: "the cage's supervisor: the process ended without an answer, or with an invalid one",
    Verdict.COMPILE_LIMIT: "the cage's limits on memory, processes, output and files",
    Verdict.HOST_READS_DATA: "while the launcher is recorded, tensors are addresses without memory",
    Verdict.UNSTABLE_PLAN: "the launcher is recorded several times, at different addresses",
    Verdict.INVALID_PLAN: "every launch of the plan is checked before a device runs it",
    Verdict.UNSUPPORTED: "the device executes only instructions that it knows",
    Verdict.OUT_OF_BOUNDS: "every access must lie within a tensor",
    Verdict.MISALIGNED: "every access must be aligned",
    Verdict.UNINITIALISED_READ: "reading bytes that this call has not written is a fault",
    Verdict.BARRIER_DIVERGENCE: "barriers are checked when they are executed",
    Verdict.DEADLOCK: "a deadlocked kernel is stopped",
    Verdict.HANG: "a limit on instructions in proportion to the work; on a GPU, a watchdog",
    Verdict.LAUNCH_FAILURE: "the driver refuses the launch",
    Verdict.OUT_OF_MEMORY: "memory is counted before it is allocated",
    Verdict.WRONG_RESULT: "fresh inputs from several distributions, results compared with float64",
    Verdict.UNWRITTEN_OUTPUT: "outputs are poisoned before two runs, with different bytes",
    Verdict.NON_DETERMINISTIC: "two runs on the same inputs, with different poison and in different orders, must agree",
    Verdict.UNREAD_INPUT: "loads are counted, and must cover every input byte that provably affects the output",
    Verdict.INPUT_MODIFIED: "a store to an input is a fault, and inputs are compared before and after",
    Verdict.TOO_FAST: "no time may be below that of the compulsory bytes at peak bandwidth",
    Verdict.INCONCLUSIVE: "small workloads alone do not prove the main workload",
}


def defence_of(verdict: Verdict) -> str:
    """The defence that caught a candidate with ``verdict``; empty if it passed."""
    return _DEFENCES.get(verdict, "")
