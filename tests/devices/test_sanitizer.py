"""Reports as compute-sanitizer 2025.3.1 wrote them on an H200 (driver 580.159.04), and what is made of them."""

from __future__ import annotations

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.cuda.sanitizer import read_report

SEARCH = "kernel_cutlass_search_kernel_tensorptrf32gmemalign16o5121_512_16384_1"
EXCHANGE = "kernel_cutlass_exchange_kernel_tensorptrf32gmemalign16o31_3_1"
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
NO_RACE = "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
OUTSIDE = f"""========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at {SEARCH}+0xb0 in candidate.py:155
=========     by thread (96,0,0) in block (0,0,0)
=========     Access to 0x7f276a801980 is out of bounds
=========     and is 385 bytes after the nearest allocation at 0x7f276a801000 of size 2,048 bytes
=========
========= Invalid __global__ read of size 4 bytes
=========     at {SEARCH}+0xb0 in candidate.py:155
=========     by thread (97,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 2 errors
"""
RACE = f"""========= COMPUTE-SANITIZER
========= Warning: Race reported between Write access at {EXCHANGE}+0xd0 in candidate.py:320
=========     and Read access at {EXCHANGE}+0xe0 in candidate.py:321 [8 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""


def test_an_access_outside_is_told_with_its_line_and_thread() -> None:
    fault = read_report("memcheck", OUTSIDE, {SEARCH}).fault
    assert fault is not None
    assert (fault.verdict, fault.line, fault.thread) == (Verdict.OUT_OF_BOUNDS, 155, (96, 0, 0))
    assert "385 bytes after the nearest allocation" in fault.message


def test_a_race_names_both_accesses() -> None:
    fault = read_report("racecheck", RACE, {EXCHANGE}).fault
    assert fault is not None
    assert (fault.verdict, fault.line) == (Verdict.NON_DETERMINISTIC, 320)
    assert "candidate.py:321" in fault.message


def test_a_clean_report_finds_nothing_and_says_nothing() -> None:
    for tool, text in (("memcheck", CLEAN), ("synccheck", CLEAN), ("racecheck", NO_RACE)):
        found = read_report(tool, text, {SEARCH})
        assert (found.fault, found.note) == (None, "")


def test_another_programs_kernel_is_not_the_candidates_doing() -> None:
    assert read_report("memcheck", OUTSIDE, {"another_kernel"}).fault is None


def test_a_report_without_an_end_is_no_clean_bill() -> None:
    broken = "========= COMPUTE-SANITIZER\n========= Error: Device not supported. Please refer to the documentation.\n"
    assert "Device not supported" in read_report("memcheck", broken, {SEARCH}).note
    assert "no report" in read_report("memcheck", "", {SEARCH}).note
