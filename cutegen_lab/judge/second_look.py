"""A second look at what a GPU let pass: the emulator runs the small workloads too.

A wrong answer is a symptom: where the emulator faults, that is the cause.

A GPU says nothing of a read past the end of a tensor that happens to work, of memory that nothing wrote, or of a race
that was won. The emulator does, and where it cannot execute a kernel that is a note, not a verdict. What is wrong as it
is written, it finds in every workload's kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Cancel, Device, Examines, Say
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.trial import WorkloadCheck
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.case import Case
from cutegen_lab.problems import Reference

DISTRIBUTIONS = ("normal", "bits")
SYMPTOMS = (Verdict.WRONG_RESULT, Verdict.NON_DETERMINISTIC, Verdict.UNWRITTEN_OUTPUT)
# The GPU has already shown that these are not the kernel's doing: it ran, it ended, it fitted.
_NO_EVIDENCE = (Verdict.UNSUPPORTED, Verdict.HANG, Verdict.OUT_OF_MEMORY, Verdict.DEVICE_ERROR)


def second_look(
    problem: Problem, reference: Reference, artifact: Artifact, emulator: Device, gpu: GpuSpec,
    seed: Callable[[], int], say: Say, cancel: Cancel,
) -> Iterator[WorkloadCheck]:  # fmt: skip
    """A check for each small workload and distribution, passed or not; one with a reason where the emulator could not
    look, and then none of that workload after it; none of what the candidate does not serve. Raises Cancelled.
    """
    yield from _examined(problem, artifact, emulator)
    for workload in problem.check_workloads:
        for number, distribution in enumerate(DISTRIBUTIONS):
            if cancel.is_set():
                raise Cancelled()
            build = artifact.builds.get(workload.name)
            if build is None:
                break
            say(f"check {workload.name} ({distribution}, on the {emulator.name})")
            case = Case(problem, reference, workload, build, emulator, gpu, cancel)
            check = case.run(distribution, seed(), first=number == 0)
            if check is not None:
                yield (told := _told(check, workload, emulator))
                if told.reason:
                    break


def _examined(problem: Problem, artifact: Artifact, emulator: Device) -> Iterator[WorkloadCheck]:
    """A check of each workload, the analyst's too, in whose kernels something is wrong as they are written."""
    if not isinstance(emulator, Examines):
        return
    for workload in (*problem.check_workloads, *problem.workloads):
        build = artifact.builds.get(workload.name)
        if build is not None and (fault := emulator.examine(build, workload.tensors + build.plan.workspace)):
            yield WorkloadCheck(workload.name, f"text on {emulator.name}", 0, fault.verdict, str(fault), fault=fault)


def _told(check: WorkloadCheck, workload: Workload, emulator: Device) -> WorkloadCheck:
    """``check`` with a name of its own, saying who found what."""
    name = f"{check.distribution} on {emulator.name}"
    if check.verdict.passed:
        return replace(check, distribution=name)
    if check.verdict in _NO_EVIDENCE:
        note = f"the {emulator.name} could not look at {workload.name}: {check.reason}"
        return replace(check, distribution=name, verdict=Verdict.PASSED, reason=note, fault=None)
    return replace(check, distribution=name, reason=f"{check.reason} (found on the {emulator.name})")
