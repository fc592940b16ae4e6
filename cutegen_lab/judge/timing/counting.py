"""Emulator counters of a kernel that a GPU times. For a large product counting takes longer than timing; with worker
processes it starts together with the kernel's checks."""

from __future__ import annotations

import threading
from contextlib import closing

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.forks import ForkEnded, Forks, Tasks
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.protocols import Cancel, MakeEmulator, Say
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.trial import Profile
from cutegen_lab.core.verdict import Fault
from cutegen_lab.judge.execution.buffers import POISONS, Buffers
from cutegen_lab.judge.timing.timed_outputs import inputs_for
from cutegen_lab.problems import Reference

_POLL_SECONDS = 0.02
_NOT_COMPARED = "the bytes that the kernel loads were not compared with the required bytes"
COUNTED_BYTES = 4 << 30  # largest workload that is counted; counting takes twice as much host memory


class LoadCount:
    """Counts the memory traffic of ``artifact`` on the main workload, with inputs from ``seed``; starts immediately.

    ``make_emulator`` makes the emulator; without one, or for a workload that is too large, nothing is counted.
    """

    def __init__(
        self, problem: Problem, artifact: Artifact, gpu: GpuSpec, seed: int, make_emulator: MakeEmulator | None,
        forks: Forks | None,
    ) -> None:  # fmt: skip
        self.seed, self.subject = seed, (problem.workload, artifact, gpu)
        self.note = ""  # reason why counting failed
        self._tasks = Tasks(forks, threading.Event())  # a new Cancel: the check's is set when the check ends
        workload = problem.workload
        countable = make_emulator and workload.name in artifact.builds and workload.nbytes <= COUNTED_BYTES
        self._found = (
            self._tasks.begin(count_sample, make_emulator, problem, artifact, gpu, seed) if countable else None
        )

    def result(self, say: Say, cancel: Cancel) -> Profile | None:
        """Waits for the profile. None if nothing was counted or the emulator cannot run the kernel. Raises
        Cancelled."""
        if self._found is None:
            return None
        if not self._found.done():
            say("count its memory traffic on the emulator")
        while not self._found.done():
            if cancel.wait(_POLL_SECONDS):
                raise Cancelled()
        try:
            found = self._found.result()
            if isinstance(found, Fault):  # a fault of a sample of blocks is not a verdict
                self.note = f"{_NOT_COMPARED}: {found}"
                return None
            return found
        except ForkEnded:
            self.note = f"{_NOT_COMPARED}: the process that counts them ended"
            return None

    def close(self) -> None:
        self._tasks.close()


class PendingCount:
    """The count that the last check started, until the timing of the same artifact takes it over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: LoadCount | None = None

    def __reduce__(self) -> tuple[type[PendingCount], tuple[()]]:
        return PendingCount, ()  # pickled without its count: another process starts its own

    def put(self, counting: LoadCount | None) -> None:
        """Stores ``counting``; ends the one stored before, if it was not taken."""
        with self._lock:
            before, self._last = self._last, counting
        if before:
            before.close()

    def take(self, problem: Problem, artifact: Artifact, gpu: GpuSpec) -> LoadCount | None:
        """The stored count if it is of this artifact and GPU, otherwise None."""
        with self._lock:
            if self._last is None or self._last.subject != (problem.workload, artifact, gpu):
                return None
            found, self._last = self._last, None
            return found


def count_sample(
    make_emulator: MakeEmulator, problem: Problem, artifact: Artifact, gpu: GpuSpec, seed: int,
    cancel: Cancel | None = None,
) -> Profile | Fault | None:  # fmt: skip
    """Profile of a sample of the main workload's blocks, or the fault that stopped it; None without an emulator. Raises
    Cancelled."""
    emulator, build = make_emulator(), artifact.builds[problem.workload.name]
    if emulator is None:
        return None
    with closing(emulator):
        inputs = inputs_for(problem, Reference(problem), seed)
        buffers = Buffers(problem.workload, build, inputs, POISONS[0])
        timing, found = emulator.time(build, buffers.tensors, buffers.views, gpu, cancel or threading.Event())
    return timing if isinstance(timing, Fault) else found
