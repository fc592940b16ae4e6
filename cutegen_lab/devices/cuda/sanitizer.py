"""Runs one execution under NVIDIA's compute-sanitizer, which also finds errors without visible effect. Takes seconds.

The worker runs under the tool with each tensor in its own allocation, so that the tool knows its bounds. The report is
a separate file, not standard output.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.errors import SetupError
from cutegen_lab.core.protocols import Cancel, Inspection, SanitizerTool
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.devices.cuda.process import SharedMemory, WorkerProcess
from cutegen_lab.devices.cuda.worker_protocol import lean

SLOWDOWN_SECONDS = 120.0  # limit for one run of a small workload, start included
_USUAL_PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/cuda/bin")
_ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
# First line of a finding (compute-sanitizer's documentation, chapters 3 to 6) -> verdict.
_FINDINGS: Mapping[str, Verdict] = {
    r"Invalid __\w+__ (?:read|write|atomic)": Verdict.OUT_OF_BOUNDS,
    r"(?:Error|Warning): (?:Potential )?(?:Race|RAW|WAR|WAW)": Verdict.NON_DETERMINISTIC,
    r"Barrier error": Verdict.BARRIER_DIVERGENCE,
}
_LINE = re.compile(r"^========= ?(.*)$", re.MULTILINE)
_SOURCE = re.compile(r"candidate\.py:(\d+)")
_THREAD = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")
_PADDING = "4096"  # unused bytes after each allocation


def find() -> str | None:
    """Path of compute-sanitizer; None if it is not installed."""
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(_USUAL_PLACES))


def inspect(tool: SanitizerTool, index: int, build: Build, buffers: Sequence[memoryview], cancel: Cancel) -> Inspection:
    """Findings of ``tool`` in one execution on GPU ``index``, or why it could not run. Raises Cancelled."""
    path = find()
    if path is None:
        return Inspection(note="compute-sanitizer is not installed")
    with (
        tempfile.TemporaryDirectory(prefix="cutegen-") as folder,
        SharedMemory([buffer.nbytes for buffer in buffers]) as memory,
    ):
        report = Path(folder, "report")
        wrapper = (path, "--tool", tool, "--log-file", str(report), "--padding", _PADDING,
                   "--print-limit", "8", "--show-backtrace", "no")  # fmt: skip
        try:
            worker = WorkerProcess(index, wrapper=wrapper, environment=_ENVIRONMENT)
        except SetupError as error:
            return Inspection(note=f"compute-sanitizer's {tool} cannot run here: {error.message}")
        try:
            memory.write(buffers)
            request = {"verb": "execute", "build": lean(build).to_dict(), "guard": 0, **memory.request}
            worker.ask(request, SLOWDOWN_SECONDS, cancel)
            worker.end()
        finally:
            worker.kill()
        text = report.read_text(errors="replace") if report.exists() else ""
    return read_report(tool, text, {launch.kernel for launch in build.plan.launches})


def read_report(tool: SanitizerTool, text: str, kernels: set[str]) -> Inspection:
    """The first finding in one of ``kernels``, or a note why there is no report."""
    lines = [match[1].strip() for match in _LINE.finditer(text)]
    if not any(line.startswith(("ERROR SUMMARY", "RACECHECK SUMMARY")) for line in lines):
        why = next((line for line in lines[1:] if line), "no report")
        return Inspection(note=f"compute-sanitizer's {tool} did not finish: {why}")
    for number, line in enumerate(lines):
        verdict = next((v for pattern, v in _FINDINGS.items() if re.match(pattern, line)), None)
        if verdict is not None and (fault := _fault(tool, verdict, _paragraph(lines[number:]), kernels)):
            return Inspection(fault)
    return Inspection()


def _fault(tool: SanitizerTool, verdict: Verdict, report: str, kernels: set[str]) -> Fault | None:
    kernel = next((name for name in sorted(kernels) if name in report), None)
    if kernel is None:  # a finding in one of PyTorch's kernels
        return None
    line, place = _SOURCE.search(report), _THREAD.search(report)
    numbers = [int(n) for n in place.groups()] if place else []
    short = report.replace(kernel, "the kernel")
    return Fault(
        verdict, f"compute-sanitizer {tool}: {short}", kernel,
        block=(numbers[3], numbers[4], numbers[5]) if numbers else None,
        thread=(numbers[0], numbers[1], numbers[2]) if numbers else None,
        line=int(line[1]) if line else 0,
    )  # fmt: skip


def _paragraph(lines: Sequence[str]) -> str:
    """A finding and its details: the lines up to an empty one."""
    end = next((i for i, line in enumerate(lines) if not line), len(lines))
    return "; ".join(lines[: min(end, 5)])
