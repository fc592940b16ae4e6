"""ncu's report under our names."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.perfmodel.ncu_limiter import STALLS
from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.counters import COUNTERS
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.trial import Profile
from cutegen_lab.devices.cuda import CudaDevice, gpu_count, ncu
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge.profile import profile
from cutegen_lab.problems import read_text
from tests.emulator.ptx_kernel import build, kernel

CANCEL = threading.Event()
PLUS_ONE = "def reference(x):\n    return x + 1\n"
EXACT = (
    "global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors",
    "shared_load_wavefronts", "shared_load_conflicts", "shared_store_wavefronts", "shared_store_conflicts",
)  # fmt: skip
UNIT = "l1tex__data_{}_mem_shared_op_ld.sum"
SASS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
REPORT = """==PROF== Connected to process 1234
==PROF== Profiling "kernel_cutlass_a" - 0: 0%....50%....100% - 5 passes
"ID","Process ID","Kernel Name","Grid Size","smsp__inst_executed.sum","dram__bytes_read.sum"
"","","","","inst","byte"
"0","1234","kernel_cutlass_a","(4, 1, 1)","1,234","65536"
"1","1234","kernel_cutlass_b","(8, 1, 1)","10","n/a"
"""


def plus_one(workload: Workload) -> Build:
    """y = x + 1 by way of shared memory, whose every second word it uses."""
    body = """
      mul.wide.u32 %rd9, %r1, 4; add.s64 %rd10, %rd1, %rd9; add.s64 %rd11, %rd2, %rd9; ld.global.f32 %f1, [%rd10];
      mov.u32 %r4, %tid.x; shl.b32 %r4, %r4, 3; mov.b32 %r5, tile; add.s32 %r5, %r5, %r4;
      st.volatile.shared.f32 [%r5], %f1; bar.sync 0; ld.volatile.shared.f32 %f2, [%r5];
      add.f32 %f2, %f2, 0f3F800000; st.global.f32 [%rd11], %f2;
      ret;"""
    ptx = kernel(body, 2, "  .shared .align 16 .b8 tile[2048];\n")
    tensors = [np.zeros(spec.shape, np.float32) for spec in workload.tensors]
    made = build(ptx, tensors, grid=(16, 1, 1), block=(256, 1, 1))
    return replace(made, cubin=ptx.encode() + b"\0", inputs=1)


def test_a_report_is_read_launch_by_launch() -> None:
    first, second = ncu.read_report(REPORT)
    assert first == ("kernel_cutlass_a", {"smsp__inst_executed.sum": 1234.0, "dram__bytes_read.sum": 65536.0})
    assert second[1]["dram__bytes_read.sum"] == 0.0
    assert ncu.counters(first[1]) == {"warp_instructions": 1234.0, "dram_load_bytes": 65536.0}


@pytest.mark.parametrize("text", ["", "==ERROR== no kernels were profiled\n"])
def test_no_report_is_no_launch(text: str) -> None:
    assert ncu.read_report(text) == []


STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
NOT_PERMITTED = """==PROF== Connected to process 1234 (/usr/bin/python3.11)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target \
device 0. For instructions on enabling permissions and to get more information see \
https://developer.nvidia.com/ERR_NVGPUCTRPERM
"""


def test_stalls_are_cycles_of_all_warps_that_can_be_added_up() -> None:
    """In each launch a warp issues 100 times; each time 2.5, then 7.5 others wait for memory, and 1 for a barrier."""
    memory, barrier = STALLED.format("long_scoreboard"), STALLED.format("barrier")
    launches = [("k", {"smsp__inst_executed.sum": 100.0, memory: ratio, barrier: 1.0}) for ratio in (2.5, 7.5)]
    found = ncu.profile_of(launches)
    assert found.counters["stall_cycles_long_scoreboard"] == 1000.0 and found.counters["stall_cycles_barrier"] == 200.0
    assert [launch.counters["stall_cycles_long_scoreboard"] for launch in found.launches] == [250.0, 750.0]
    assert found.findings[1] == "83% of stalled cycles wait for data from global memory or L2 (long_scoreboard)"
    without = ncu.profile_of([("k", {"smsp__inst_executed.sum": 100.0})])
    assert len(without.findings) == 1 and not any(name.startswith("stall") for name in without.counters)


def test_every_reason_is_asked_for_by_ncus_name() -> None:
    assert {STALLED.format(reason) for reason in set(STALLS) - {"selected", "not_selected"}} <= set(ncu.WANTED)


def test_counters_that_are_not_permitted_are_said_with_how_to_permit_them() -> None:
    said = ncu.why_none(NOT_PERMITTED)
    assert "ERR_NVGPUCTRPERM" in said and "NVreg_RestrictProfilingToAdminUsers=0" in said and "SYS_ADMIN" in said
    assert "\n" not in said
    assert ncu.why_none("==ERROR== Failed to find metric x\n==ERROR== more\n") == "ncu: Failed to find metric x"
    assert ncu.why_none(REPORT) == ""


def test_every_name_is_one_the_emulator_has_too() -> None:
    assert set(ncu.METRICS) <= set(COUNTERS)


def test_conflicts_are_without_waits_for_other_users_of_shared_memory() -> None:
    """100 wavefronts by the instructions, 130 and 40 conflicts by the unit, which waited 30 times: 10 are real."""
    values = {SASS.format("ld"): 80.0, SASS.format("ldsm"): 20.0, UNIT.format("pipe_lsu_wavefronts"): 130.0,
              UNIT.format("bank_conflicts_pipe_lsu"): 40.0}  # fmt: skip
    found = ncu.counters(values)
    assert (found["shared_load_wavefronts"], found["shared_load_conflicts"]) == (100.0, 10.0)


def test_constants_moved_by_the_tensor_pipe_are_no_products() -> None:
    values = {"sm__inst_executed_pipe_tensor.sum": 31.0, "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum": 31.0}
    assert ncu.counters(values) == {"tensor_instructions": 0.0}


def test_the_command_names_the_kernels_and_leaves_clocks_alone() -> None:
    words = ncu.command("ncu", "r.csv", ["a.sum", "b.sum"], ["k[1]"])
    assert words[:3] == ("ncu", "--clock-control", "none") and "a.sum,b.sum" in words
    assert words[-1] == r"regex:^(k\[1\])$"


@pytest.mark.skipif(gpu_count() == 0 or ncu.find() is None, reason="needs a CUDA device and ncu")
def test_a_hardware_profile_counts_what_the_emulator_counts() -> None:
    """Needs no DSL: the kernel is PTX, which a driver takes as it takes a cubin."""
    problem = read_text(PLUS_ONE, name="plus_one", inputs_text="x: f32[4096]")
    artifact = Artifact("", {}, "sm_90a", "", {"main": plus_one(problem.workload)})
    device = CudaDevice()
    try:
        theirs = profile(problem, artifact, device, 3, CANCEL)
    finally:
        device.close()
    mine = profile(problem, artifact, EmulatorDevice(), 3, CANCEL)
    assert isinstance(theirs, Profile) and isinstance(mine, Profile), (theirs, mine)
    assert theirs.source == "hardware" and set(theirs.counters) <= set(COUNTERS)
    assert theirs.limiter and theirs.findings[0].endswith("of its peak")
    assert {name: theirs.counters[name] for name in EXACT} == {name: mine.counters[name] for name in EXACT}
    assert theirs.counters["global_load_sectors"] == 512.0


def test_a_machine_without_ncu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ncu, "find", lambda: None)
    build = plus_one(read_text(PLUS_ONE, name="plus_one", inputs_text="x: f32[4096]").workload)
    said = ncu.profile(0, build, [], CANCEL)
    assert said == "ncu is not installed: it comes with the CUDA toolkit, and as Nsight Compute from NVIDIA"


def test_a_tool_that_may_not_count_says_how_to_permit_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in ncu's place writes what ncu writes then, and runs nothing."""
    tool = tmp_path / "ncu"
    log = "while [ $# -gt 0 ]; do [ $1 = --log-file ] && log=$2; shift; done"
    tool.write_text(f"#!/bin/sh\n{log}\ncat > $log <<'E'\n{NOT_PERMITTED}E\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setattr(ncu, "find", lambda: str(tool))
    build = plus_one(read_text(PLUS_ONE, name="plus_one", inputs_text="x: f32[4096]").workload)
    said = ncu.profile(0, build, [memoryview(bytearray(16))], CANCEL)
    assert isinstance(said, str) and "NVreg_RestrictProfilingToAdminUsers=0" in said
