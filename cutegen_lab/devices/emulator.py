"""``EmulatorDevice``: runs builds on the CPU and predicts their time on the target GPU."""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.predicted import WAITS, as_counters
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.protocols import Cancel, Execution
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.timeline import Timeline
from cutegen_lab.core.trial import LaunchCounters, LineCounters, Profile, Timing
from cutegen_lab.core.verdict import Fault
from cutegen_lab.emulator import Options, Order, Result, run_plan
from cutegen_lab.emulator.analysis.examine import examined
from cutegen_lab.emulator.analysis.independent_blocks import why_not_alone
from cutegen_lab.emulator.counters.totals import added
from cutegen_lab.emulator.execution_order import CLOCK_BITS
from cutegen_lab.perfmodel import MODEL, error_band, predict_plan

SAMPLE_BLOCKS = 64
FEWEST_BLOCKS = 6  # minimum number of blocks of a sample: the first, the last, and four others
# Clusters of each launch that run with race detection (3 to 8 times slower) in a build's first large runs.
WATCHED = 4
_WATCHED_RUNS = 4  # such runs: the first draw's two, and the mixed draws, which cover most branches
RECORDED = 50_000  # instructions after which a block recorded alone is assumed to wait for other blocks
MANY_INSTRUCTIONS = (
    2e6  # warp instructions of a block sample that is large enough: more takes seconds and changes little
)


class EmulatorDevice:
    """A :class:`~cutegen_lab.core.protocols.Device` that needs no GPU. Its times are predictions and labelled so.

    Consecutive executions of one build in a thread form pairs, to expose a kernel whose result depends on the execution
    order, addresses or clocks. The first of a pair runs the blocks by number (in later pairs in random order), the
    second in reverse order, with other addresses and clock values. Approximate arithmetic has its largest permitted
    error in every other pair, beginning with the first, and about the hardware's error in the others. ``seed_source``
    returns 62-bit seeds.
    """

    name = "emulator"
    kind: Literal["cuda", "emulator"] = "emulator"
    torch_device = "cpu"

    def __init__(
        self, options: Options | None = None, seed_source: Callable[[], int] = lambda: secrets.randbits(CLOCK_BITS)
    ) -> None:
        self._options = options or Options()
        self._seed = seed_source
        self._last = threading.local()  # the build a thread executed last, and in which order

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        counting: bool = True, flops: int = 0,
    ) -> Execution:  # fmt: skip
        """Runs every block of every launch, in place on ``buffers``. Raises Cancelled."""
        options = replace(self._options, counting=counting, flops=flops, watched=self._watched(build))
        if options.order is None:
            options = replace(options, order=self._next_order(build))
        return run_plan(build, tensors, buffers, cancel, options).execution

    def examine(self, build: Build, tensors: Sequence[TensorSpec]) -> Fault | None:
        """Fault in the build's text, whatever the inputs; None if there is none."""
        return examined(build, list(map(str, tensors)))

    def sample(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        share: float, flops: int = 0,
    ) -> Execution | str:  # fmt: skip
        """Runs random blocks: about ``share`` (0 to 1) of all, at least six clusters, at most 64 blocks beyond these.
        Returns the reason instead if a sample would prove nothing. Reading a byte of an output, the workspace or shared
        memory that no sampled block has written is a fault. Raises Cancelled."""
        if why := why_not_alone(build):
            return why
        launch = build.plan.launches[0]
        wanted = min(math.ceil(share * math.prod(launch.grid)), SAMPLE_BLOCKS)
        order = Order(seed=self._seed() | 1, clock=self._seed())
        blocks = max(wanted, FEWEST_BLOCKS * math.prod(launch.cluster))
        options = replace(
            self._options, flops=int(flops * share), sample_blocks=blocks, order=order, watched=self._watched(build)
        )
        return run_plan(build, tensors, buffers, cancel, options).execution

    def time(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], gpu: GpuSpec, cancel: Cancel
    ) -> tuple[Timing | Fault, Profile | None]:
        """Time and profile predicted from :meth:`count`. ``buffers`` are partly overwritten. Raises Cancelled."""
        result, sampled = self.count(build, tensors, buffers, cancel)
        if result.execution.fault:
            return result.execution.fault, None
        kernels = {k.name: k for k in build.kernels}
        own = tensors[: len(tensors) - len(build.plan.workspace)]
        compulsory = float(sum(spec.compulsory_bytes for spec in own))
        by_line = result.lines(build)
        prediction = predict_plan(result.per_launch, build.plan.launches, kernels, gpu, compulsory, by_line)
        stalls = {line: as_counters({WAITS: wait_us}) for line, wait_us in prediction.stalls_us.items()}
        timing = Timing(
            kind="predicted", time_us=prediction.time_us, device=gpu.name,
            method=f"{MODEL}; counts from {'a sample of blocks' if sampled else 'every block'}",
            band_us=error_band(prediction.time_us, prediction.limiter, gpu),
        )  # fmt: skip
        counters = {**result.execution.counters, **as_counters(prediction.parts), "compulsory_bytes": compulsory}
        if prediction.occupancy:
            counters["resident_warps_per_sm"] = float(prediction.occupancy.warps)
            counters["waves"] = prediction.occupancy.waves
        lines = tuple(
            LineCounters(line, {name: value for name, value in found.items() if value})
            for line, found in added([*by_line, stalls]).items()
        )
        launches = tuple(map(LaunchCounters, (x.kernel for x in build.plan.launches), result.per_launch))
        each = launches if len(launches) > 1 else ()
        accesses = result.accesses(build)
        return timing, Profile("emulator", prediction.limiter, counters, prediction.findings, lines, each, accesses)

    def timelines(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel
    ) -> tuple[Timeline, ...] | str:
        """Timelines of one block of each launch, or the reason why there are none. Bulk copies complete as late as
        possible. ``buffers`` are partly overwritten. Raises Cancelled."""
        whole = replace(self._options, shadow=False, races=True, record=True)
        alone = replace(whole, sample_blocks=1, budget=RECORDED)
        result = run_plan(build, tensors, buffers, cancel, alone)
        if result.execution.fault is not None:  # for example, blocks that wait for each other
            result = run_plan(build, tensors, buffers, cancel, whole)
        return str(result.execution.fault) if result.execution.fault else tuple(result.timelines)

    def close(self) -> None:
        """Does nothing: no resources are held."""

    def _watched(self, build: Build) -> int:
        """Clusters of a large run with race detection: more in a build's first runs, which cover its branches on
        different data."""
        before, runs = getattr(self._last, "watched", (None, 0))
        runs = runs + 1 if before is build else 1
        self._last.watched = build, runs
        return WATCHED if runs <= _WATCHED_RUNS else self._options.watched

    def _next_order(self, build: Build) -> Order:
        before: tuple[Build, Order] | None = getattr(self._last, "execution", None)
        if before is None or before[0] is not build:
            order = self._drawn(as_near_as_hardware=False)
        elif before[1].reverse:
            order = replace(self._drawn(as_near_as_hardware=before[1].noise is None), seed=self._seed())
        else:
            order = before[1].opposite()
        self._last.execution = build, order
        return order

    def _drawn(self, as_near_as_hardware: bool) -> Order:
        order = Order(clock=self._seed())
        return order if (order.noise is not None) == as_near_as_hardware else replace(order, clock=order.clock ^ 1)

    def count(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel
    ) -> tuple[Result, bool]:
        """Execution with counters, and whether these come from a sample: about 64 blocks of each launch (six expensive
        ones), spread evenly over its grid and scaled to all. If a sample cannot run by itself (blocks that wait for
        each other), every block runs. Raises Cancelled."""
        whole = replace(self._options, shadow=False, races=False)
        for blocks in (FEWEST_BLOCKS, SAMPLE_BLOCKS):
            result = run_plan(build, tensors, buffers, cancel, replace(whole, sample_blocks=blocks))
            if result.execution.fault is not None:
                return run_plan(build, tensors, buffers, cancel, whole), False
            ran = [c["warp_instructions"] * c["blocks_counted"] / c["blocks"] for c in result.per_launch]
            if sum(ran) > MANY_INSTRUCTIONS:
                break
        return result, any(c["blocks_counted"] < c["blocks"] for c in result.per_launch)
