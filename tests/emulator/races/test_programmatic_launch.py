"""Programmatic dependent launch: accesses to an earlier kernel's results before griddepcontrol.wait."""
# ruff: noqa: E501 - tables of launches

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from cutegen_lab.core.artifact import Launch
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, run_plan
from tests.emulator.planted import ptx_lines
from tests.emulator.ptx_kernel import HEADER, REGISTERS, build

PROGRAMMATIC = {6: (1).to_bytes(4, "little")}
ADDRESS = "  ld.param.b64 %rd1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3;\n"
BODIES = {
    "writes": "  st.global.b32 [%rd3], %r1;  // EARLIER",
    "waits_writes": "  griddepcontrol.wait;\n  st.global.b32 [%rd3], %r1;",
    "nothing": "  mov.u32 %r2, 0;",
    "waits": "  griddepcontrol.wait;",
    "reads": "  ld.global.b32 %r2, [%rd3];  // READ",
    "waits_reads": "  griddepcontrol.wait;\n  ld.global.b32 %r2, [%rd3];  // WAITED",
    "overwrites": "  mov.u32 %r2, 7; st.global.b32 [%rd3], %r2;  // OVERWRITTEN",
    "adds": "  red.global.add.u32 [%rd3], 1;  // ADDED",
    "waits_overwrites": "  griddepcontrol.wait; mov.u32 %r2, 7;\n  st.global.b32 [%rd3], %r2;",
    "lets_begin_waits": "  griddepcontrol.launch_dependents; griddepcontrol.wait;",
    "waits_lets_begin": "  griddepcontrol.wait; griddepcontrol.launch_dependents;",
    "nothing_but_one_waits": "  setp.lt.u32 %p1, %r1, 32;\n  @%p1 griddepcontrol.wait;",
    "looks": "  ld.global.b32 %r2, [%rd3];  // EARLIER_LOOK",
    "one_warp_waits": "  setp.lt.u32 %p1, %r1, 32;\n  @%p1 griddepcontrol.wait;\n  ld.global.b32 %r2, [%rd3];  // HALF",
    "one_warp_waits_for_all": "  setp.lt.u32 %p1, %r1, 32;\n  @%p1 griddepcontrol.wait;\n  bar.sync 0;\n"
    "  ld.global.b32 %r2, [%rd3];",
}  # fmt: skip
PTX = HEADER + "\n".join(
    f".visible .entry {name}(.param .b64 p0)\n{{{REGISTERS}\n{ADDRESS}{body}\n  ret;\n}}"
    for name, body in BODIES.items()
)


def fault_after(*launches: str, options: Options | None = None, given: int = 0) -> Fault | None:
    """Runs kernels one after another on one tensor (``given`` 1: an input); a name after "+" is programmatic."""
    tensor = np.zeros(64, np.uint32)
    made = build(PTX, [tensor], block=(64, 1, 1), lines=ptx_lines(PTX))
    first = made.plan.launches[0]

    def launch(name: str) -> Launch:
        return replace(first, kernel=name.lstrip("+"), attributes=PROGRAMMATIC if name[0] == "+" else {})

    made = replace(made, plan=replace(made.plan, launches=tuple(map(launch, launches))))
    views = [memoryview(tensor.view(np.uint8))]
    return run_plan(made, [TensorSpec.parse("t: u8[256]")], views, threading.Event(), options, given).execution.fault


def line_of(mark: str) -> int:
    return next(n for n, line in enumerate(PTX.split("\n"), 1) if f"// {mark}" in line)


@pytest.mark.parametrize(
    ("launches", "verdict", "mark", "words"),
    [
        (("writes", "+reads"), Verdict.UNINITIALISED_READ, "READ", "reads byte 0 of t: u8[256] before grid"),
        (("writes", "+overwrites"), Verdict.NON_DETERMINISTIC, "OVERWRITTEN", "writes byte 0"),
        (("writes", "+adds"), Verdict.UNINITIALISED_READ, "ADDED", "reads byte 0"),
        (("nothing", "writes", "+reads"), Verdict.UNINITIALISED_READ, "READ", "launch 2 (writes) wrote it"),
        (("writes", "+nothing", "+reads"), Verdict.UNINITIALISED_READ, "READ", "launch 1 (writes) wrote it"),
        (("+waits_writes", "+reads"), Verdict.UNINITIALISED_READ, "READ", "launch 1 (waits_writes) wrote it"),
        (("writes", "+lets_begin_waits", "+reads"), Verdict.UNINITIALISED_READ, "READ", "launch 1 (writes) wrote it"),
        (("writes", "+nothing", "+waits_reads"), Verdict.UNINITIALISED_READ, "WAITED", "did not itself wait until launch 1"),
        (("writes", "+nothing", "+waits_lets_begin", "+waits_reads"), Verdict.UNINITIALISED_READ, "WAITED", "until launch 1"),
        (("writes", "+nothing", "+waits_lets_begin", "+reads"), Verdict.UNINITIALISED_READ, "READ", "launch 1 (writes) wrote it"),
        (("writes", "+one_warp_waits"), Verdict.UNINITIALISED_READ, "HALF", "reads byte 128"),
    ],
)  # fmt: skip
def test_found(launches: tuple[str, ...], verdict: Verdict, mark: str, words: str) -> None:
    fault = fault_after(*launches)
    assert fault is not None and fault.verdict is verdict and words in fault.message, fault
    assert fault.line == line_of(mark) and ", `st.global.b32" in fault.message
    assert fault.thread is not None and fault.kernel == launches[-1].lstrip("+")


@pytest.mark.parametrize(
    "launches",
    [
        ("writes", "reads"), ("writes", "+waits_reads"), ("+waits_writes", "+waits_reads", "+waits_reads"),
        ("writes", "nothing", "+reads"), ("writes", "+waits", "+reads"), ("writes", "+nothing", "reads"),
        ("writes", "+waits_lets_begin", "+reads"), ("writes", "+lets_begin_waits", "+waits_reads"),
        ("writes", "looks", "+waits_overwrites"), ("writes", "looks", "nothing", "+overwrites"),
        ("writes", "looks", "+writes"), ("writes", "looks", "+looks"), ("writes", "looks", "+waits", "+overwrites"),
        ("writes", "nothing", "+waits_reads"), ("writes", "+waits", "+nothing", "+waits_reads"),
        ("writes", "+nothing", "nothing", "+waits_reads"), ("+waits_writes", "+nothing", "+nothing", "reads"), ("+waits", "+writes"),
        ("writes", "+nothing_but_one_waits", "+waits_reads"), ("nothing", "+writes", "+waits_reads"),
        ("writes", "+one_warp_waits_for_all"), ("writes", "+writes"), ("writes", "adds", "reads"),
    ],
)  # fmt: skip
def test_what_waits_is_not_reported(launches: tuple[str, ...]) -> None:
    assert fault_after(*launches) is None


@pytest.mark.parametrize(
    ("launches", "verdict"),
    [
        (("+reads",), Verdict.UNINITIALISED_READ), (("+writes",), Verdict.NON_DETERMINISTIC),
        (("+nothing", "+waits_reads"), Verdict.UNINITIALISED_READ),
        (("+lets_begin_waits", "+reads"), Verdict.UNINITIALISED_READ), (("+nothing", "+reads"), Verdict.UNINITIALISED_READ),
    ],
)  # fmt: skip
def test_the_first_launch_waits_for_what_makes_its_inputs(launches: tuple[str, ...], verdict: Verdict) -> None:
    """``y = f(x); y = kernel(y)``: what made ``x`` may still run, and so may the call before, whose workspace it is."""
    given = int(verdict is Verdict.UNINITIALISED_READ)
    fault = fault_after(*launches, given=given)
    assert fault is not None and fault.verdict is verdict, fault
    assert "byte 0 of t: u8[256]" in fault.message and "the first launch is programmatic" in fault.message
    assert ("which did not itself wait:" in fault.message) == (launches[-1] == "+waits_reads")
    assert fault_after("nothing" if given else "writes", *launches, given=given) is None


def test_large_runs_do_not_look() -> None:
    assert fault_after("writes", "+reads", options=Options(races=False)) is None


@pytest.mark.parametrize(
    "launches", [("writes", "looks", "+overwrites"), ("writes", "looks", "+nothing", "+overwrites")]
)
def test_what_a_launch_before_reads_is_not_overwritten(launches: tuple[str, ...]) -> None:
    fault = fault_after(*launches)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert "writes byte 0 of t: u8[256] before griddepcontrol.wait, and launch 2 (looks) reads it" in fault.message
    assert fault.line == line_of("OVERWRITTEN") and f"(line {line_of('EARLIER_LOOK')}, " in fault.message
