"""ncu's report under our names."""

from __future__ import annotations

import pytest

from cutegen_lab.core.counters import COUNTERS
from cutegen_lab.devices.cuda import ncu

UNIT = "l1tex__data_{}_mem_shared_op_ld.sum"
SASS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
REPORT = """==PROF== Connected to process 1234
==PROF== Profiling "kernel_cutlass_a" - 0: 0%....50%....100% - 5 passes
"ID","Process ID","Kernel Name","Grid Size","smsp__inst_executed.sum","dram__bytes_read.sum"
"","","","","inst","byte"
"0","1234","kernel_cutlass_a","(4, 1, 1)","1,234","65536"
"1","1234","kernel_cutlass_b","(8, 1, 1)","10","n/a"
"""


def test_a_report_is_read_launch_by_launch() -> None:
    first, second = ncu.read_report(REPORT)
    assert first == ("kernel_cutlass_a", {"smsp__inst_executed.sum": 1234.0, "dram__bytes_read.sum": 65536.0})
    assert second[1]["dram__bytes_read.sum"] == 0.0
    assert ncu.counters(first[1]) == {"warp_instructions": 1234.0, "dram_load_bytes": 65536.0}


@pytest.mark.parametrize("text", ["", "==ERROR== no kernels were profiled\n"])
def test_no_report_is_no_launch(text: str) -> None:
    assert ncu.read_report(text) == []


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
