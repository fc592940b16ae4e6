"""Hardware counters of one execution from NVIDIA Nsight Compute, under the emulator's counter names.

ncu replays each kernel until every counter has been read. The metric names are those of compute capability 9.0 (Nsight
Compute documentation, "Metrics Reference"). They count SASS, whose instructions differ from the PTX that the emulator
counts; the accesses are the same unless ptxas merged or removed some.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.counters import STALLS
from cutegen_lab.core.errors import SetupError
from cutegen_lab.core.protocols import Cancel
from cutegen_lab.core.trial import LaunchCounters, Profile
from cutegen_lab.devices.cuda.process import SharedMemory, WorkerProcess
from cutegen_lab.devices.cuda.worker_protocol import lean

_LSU = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_LOOK_UPS = "l1tex__t_set_accesses_pipe_lsu_mem_global_op_{}.sum"
_UNIT_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_UNIT_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
_BY_SASS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"


def _wavefronts(way: str, matrices: str) -> tuple[str, ...]:
    """Metrics that count the wavefronts of instructions, without waits for other users of the unit (which the unit's
    own counter includes)."""
    return _BY_SASS.format(way), _BY_SASS.format(matrices)


def _conflicts(way: str, matrices: str) -> tuple[str, ...]:
    """Metrics of the wavefronts that bank conflicts add: all wavefronts minus those without conflicts. The latter are
    the difference of two counters of the unit, both of which include waits for other users."""
    return *_wavefronts(way, matrices), "-" + _UNIT_WAVEFRONTS.format(way), _UNIT_CONFLICTS.format(way)


# Our name -> NVIDIA's metrics, which are added, or subtracted if they begin with "-".
METRICS: Mapping[str, tuple[str, ...]] = {
    "warp_instructions": ("smsp__inst_executed.sum",),
    "lane_instructions": ("smsp__thread_inst_executed.sum",),
    "tensor_instructions": (
        "sm__inst_executed_pipe_tensor.sum",
        "-sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum",
    ),
    "global_load_requests": (_LSU.format("requests", "ld"),),
    "global_load_sectors": (_LSU.format("sectors", "ld"),),
    "global_load_lines": (_LOOK_UPS.format("ld"),),
    "global_store_lines": (_LOOK_UPS.format("st"),),
    "global_store_requests": (_LSU.format("requests", "st"),),
    "global_store_sectors": (_LSU.format("sectors", "st"),),
    "global_atomic_requests": (_LSU.format("requests", "atom"), _LSU.format("requests", "red")),
    "global_atomic_sectors": (_LSU.format("sectors", "atom"), _LSU.format("sectors", "red")),
    "shared_load_wavefronts": _wavefronts("ld", "ldsm"),
    "shared_load_conflicts": _conflicts("ld", "ldsm"),
    "shared_store_wavefronts": _wavefronts("st", "stsm"),
    "shared_store_conflicts": _conflicts("st", "stsm"),
    "shared_copy_wavefronts": (_BY_SASS.format("ldgsts"),),
    "bulk_store_sectors": (
        "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",
        "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red.sum",
    ),
    "cluster_requests": ("smsp__sass_inst_executed_op_dshared.sum",),
    "dram_load_bytes": ("dram__bytes_read.sum",),
    "dram_store_bytes": ("dram__bytes_write.sum",),
}
_STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"  # warps stalled for this reason, per issue
_ISSUED = "smsp__inst_executed.sum"
_COUNTED = {metric.removeprefix("-") for metrics in METRICS.values() for metric in metrics}
WANTED = tuple(sorted(_COUNTED | {*map(_STALLED.format, STALLS)}))
_LOADS: Mapping[str, str] = {  # possible limiter -> metric of its percent of peak
    "memory bandwidth": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "L2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "L1 and shared memory": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "instruction issue and functional units": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
}
_BUSY = 60.0  # percent of peak; if all units are below it, latency is the limiter
_SECONDS = 180.0  # limit for one execution with all its replays
_NOT_PERMITTED = "ERR_NVGPUCTRPERM"
_HOW_TO_PERMIT = (
    "ncu may not read the GPU's counters (ERR_NVGPUCTRPERM): run as root, give a container --cap-add=SYS_ADMIN, or "
    "permit every user by the line `options nvidia NVreg_RestrictProfilingToAdminUsers=0` in "
    "/etc/modprobe.d/nvidia.conf and a restart (https://developer.nvidia.com/ERR_NVGPUCTRPERM)"
)
_USUAL_PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/cuda/bin")


def profile(index: int, build: Build, buffers: Sequence[memoryview], cancel: Cancel) -> Profile | str:
    """Counters of one execution on GPU ``index``, or the reason why there are none. Raises Cancelled."""
    path = find()
    if path is None:
        return "ncu is not installed: it comes with the CUDA toolkit, and as Nsight Compute from NVIDIA"
    kernels = sorted({launch.kernel for launch in build.plan.launches})
    with (
        tempfile.TemporaryDirectory(prefix="cutegen-") as folder,
        SharedMemory([buffer.nbytes for buffer in buffers]) as memory,
    ):
        report = Path(folder, "report.csv")
        wrapper = command(path, str(report), (*WANTED, *_LOADS.values()), kernels)
        try:
            worker = WorkerProcess(index, wrapper=wrapper)
        except SetupError as error:
            return why_none(_text(report)) or f"ncu cannot run here: {error.message}"
        try:
            memory.write(buffers)
            worker.ask({"verb": "execute", "build": lean(build).to_dict(), **memory.request}, _SECONDS, cancel)
            worker.end()
        finally:
            worker.kill()
        text = _text(report)
    launches = read_report(text)
    return profile_of(launches) if launches else why_none(text) or "ncu reported no launch"


def _text(report: Path) -> str:
    return report.read_text(errors="replace") if report.exists() else ""


def why_none(text: str) -> str:
    """Why a report has no launch, and what to do about it; empty if unknown."""
    if _NOT_PERMITTED in text:
        return _HOW_TO_PERMIT
    errors = (line.removeprefix("==ERROR==").strip() for line in text.splitlines() if line.startswith("==ERROR=="))
    first = next(errors, "")
    return f"ncu: {first}" if first else ""


def profile_of(launches: Sequence[tuple[str, Mapping[str, float]]]) -> Profile:
    """Profile of launches as :func:`read_report` gives them: counters summed, and the limiter of the launch with the
    most instructions."""
    total: Counter[str] = Counter()
    for _, values in launches:
        total.update(counters(values))
    longest = max((values for _, values in launches), key=lambda values: values.get(_ISSUED, 0.0))
    limiter = max(_LOADS, key=lambda name: longest.get(_LOADS[name], 0.0))
    percent = longest.get(_LOADS[limiter], 0.0)
    findings = [f"{limiter} at {percent:.0f}% of its peak"]
    stalls = {reason: total[f"stall_cycles_{reason}"] for reason in STALLS}
    most = max(stalls, key=lambda reason: stalls[reason])
    if stalls[most]:
        findings.append(f"{stalls[most] / sum(stalls.values()):.0%} of stalled cycles wait for {STALLS[most]} ({most})")
    return Profile(
        "hardware", limiter if percent >= _BUSY else "latency: nothing is busy", total, tuple(findings),
        launches=tuple(LaunchCounters(kernel, counters(values)) for kernel, values in launches[1:] and launches),
    )  # fmt: skip


def find() -> str | None:
    """Path of ncu; None if it is not installed."""
    return shutil.which("ncu") or shutil.which("ncu", path=os.pathsep.join(_USUAL_PLACES))


def command(path: str, report: str, metrics: Sequence[str], kernels: Sequence[str] = ()) -> tuple[str, ...]:
    """Command prefix that runs a program under ncu, which writes counters of its launches of ``kernels`` (all if empty)
    to the file ``report``.

    Clocks are left unlocked; caches are flushed before each replay.
    """
    only = ("--kernel-name", f"regex:^({'|'.join(map(re.escape, kernels))})$") if kernels else ()
    return (path, "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", "--log-file", report,
            "--metrics", ",".join(metrics), "--target-processes", "all", *only)  # fmt: skip


def read_report(text: str) -> list[tuple[str, dict[str, float]]]:
    """(kernel, value by metric) of each launch, in order; empty if ncu reported none."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    names, _, *rows = csv.reader(lines[start:])  # the second row holds the units
    at = names.index("Kernel Name")
    return [
        (row[at], {name: _number(value) for name, value in zip(names, row, strict=True) if "__" in name})
        for row in rows
        if len(row) == len(names)
    ]


def counters(values: Mapping[str, float]) -> dict[str, float]:
    """One launch's values under our names, if all metrics of a name were read."""
    found = {}
    for name, metrics in METRICS.items():
        if all(metric.removeprefix("-") in values for metric in metrics):
            found[name] = sum(-values[m[1:]] if m.startswith("-") else values[m] for m in metrics)
    for reason in STALLS:
        if (metric := _STALLED.format(reason)) in values and _ISSUED in values:
            found[f"stall_cycles_{reason}"] = values[metric] * values[_ISSUED]
    for unit in ("wavefronts", "conflicts"):
        parts = [found[name] for name in (f"shared_load_{unit}", f"shared_store_{unit}") if name in found]
        if len(parts) == 2:
            found[f"shared_{unit}"] = sum(parts) + found.get(f"shared_copy_{unit}", 0.0)
    return found


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0
