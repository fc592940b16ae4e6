"""Runs the vendor's memory and race checkers on a workload's kernels, if the device has them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.protocols import Cancel, Inspects, SanitizerTool, Say
from cutegen_lab.core.trial import WorkloadCheck
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.draws.inputs import fill
from cutegen_lab.judge.execution.buffers import POISONS, Buffers

WORKLOADS = 2  # number of the smallest workloads to run: a sanitizer slows a kernel down a hundredfold
TOOLS: tuple[SanitizerTool, ...] = get_args(SanitizerTool)


def sanitizer_checks(
    workloads: Sequence[Workload], artifact: Artifact, device: Inspects, seed: int, say: Say, cancel: Cancel
) -> Iterator[WorkloadCheck]:
    """One check for each tool and workload; its reason says why a tool could not run. Raises Cancelled."""
    chosen = sorted(workloads, key=lambda w: w.nbytes)[:WORKLOADS]
    for tool in TOOLS:
        for workload in chosen:
            if cancel.is_set():
                raise Cancelled()
            say(f"check {workload.name} (compute-sanitizer {tool})")
            started = time.perf_counter()
            build = artifact.builds[workload.name]
            buffers = Buffers(workload, build, fill(workload, seed), POISONS[0])
            found = device.inspect(tool, build, buffers.views, cancel)
            check = WorkloadCheck(workload.name, tool, seed, Verdict.PASSED, found.note)
            if found.fault:
                check = replace(check, verdict=found.fault.verdict, reason=str(found.fault), fault=found.fault)
            yield replace(check, seconds=time.perf_counter() - started)
            if found.note:
                break  # this tool cannot run on this machine
