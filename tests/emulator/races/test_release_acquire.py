"""Order between blocks, and between the warps of one, by releases, acquires and fences (PTX ISA 8.9.5). Each planted
bug leaves an operation out, makes it relaxed or gives it too small a scope. Its twin is not reported."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, Order
from tests.emulator.planted import line_of, ptx_lines
from tests.emulator.ptx_kernel import kernel, run
from tests.emulator.races.shared_kernel import fault_in as fault_in_shared
from tests.emulator.races.shared_kernel import text

BLOCKS, THREADS = 4, 64
# Every thread leaves its number in the workspace; all blocks meet; each reads what the next block left.
BARRIER = """
  mov.u32 %r5, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3; setp.ne.u32 %p1, %r5, 0;
  add.s64 %rd4, %rd1, 4096;
  st.global.b32 [%rd3], %r1;  // EARLIER
  {meet}
  @%p1 bra MET;
  {arrive}
SPIN:
  {look}
  setp.lt.u32 %p2, %r7, 4; @%p2 bra SPIN;
  {after}
MET:
  {leave}
  add.s32 %r8, %r1, 64; and.b32 %r8, %r8, 255; mul.wide.u32 %rd5, %r8, 4; add.s64 %rd5, %rd1, %rd5;
  ld.global.b32 %r9, [%rd5];  // FAULT
  mul.wide.u32 %rd6, %r1, 4; add.s64 %rd6, %rd2, %rd6; st.global.b32 [%rd6], %r9;
  ret;"""
PARTS = {
    "meet": "bar.sync 0;",
    "arrive": "atom.global.add.release.gpu.u32 %r6, [%rd4], 1;",
    "look": "ld.global.acquire.gpu.b32 %r7, [%rd4];",
    "after": "",
    "leave": "bar.sync 0;",
}
RELAXED = {
    "arrive": "fence.acq_rel.gpu; red.global.add.relaxed.gpu.u32 [%rd4], 1;",
    "look": "ld.global.relaxed.gpu.b32 %r7, [%rd4];",
    "after": "fence.acq_rel.gpu;",
}
OLD = {
    "arrive": "membar.gl; red.global.add.u32 [%rd4], 1;", "look": "ld.volatile.global.b32 %r7, [%rd4];",
    "after": "membar.gl;",
}  # fmt: skip
RIGHT = {
    "release and acquire": {},
    "fences": RELAXED,
    "as of old": OLD,
    "the whole system": {"arrive": PARTS["arrive"].replace("gpu", "sys")},
    "both ways at once": {"look": "atom.global.add.acq_rel.gpu.u32 %r7, [%rd4], 0;"},
    "an arrival and a fence": {"arrive": "fence.acq_rel.gpu; atom.global.add.u32 %r6, [%rd4], 1;"},
    "looked at with a fence": {"look": RELAXED["look"], "after": RELAXED["after"]},
}
WRONG = {
    "a relaxed arrival": {"arrive": PARTS["arrive"].replace("release", "relaxed")},
    "an arrival that only acquires": {"arrive": PARTS["arrive"].replace("release", "acquire")},
    "a relaxed look": {"look": PARTS["look"].replace("acquire", "relaxed")},
    "a fence after the arrival": {"arrive": "red.global.add.relaxed.gpu.u32 [%rd4], 1; fence.acq_rel.gpu;"},
    "no fence before": RELAXED | {"arrive": "red.global.add.relaxed.gpu.u32 [%rd4], 1;"},
    "no fence after": RELAXED | {"after": ""},
    "fences for the block": RELAXED | {"arrive": RELAXED["arrive"].replace("acq_rel.gpu", "acq_rel.cta")},
    "membar for the block": OLD | {"after": "membar.cta;"},
    "a fence of another kind": RELAXED | {"after": "fence.proxy.async;"},
    "the block has not met before": {"meet": ""},
    "the block does not meet after": {"leave": ""},
    "nobody looks": {"look": "mov.u32 %r7, 4;"},
    "only the arrival is a fence's": {"look": "mov.u32 %r7, 4;", "after": "fence.acq_rel.gpu;"},
}


def fault_in(parts: dict[str, str], seed: int = 0, clusters: int = 1) -> tuple[str, Fault | None]:
    ptx = kernel(BARRIER.format(**(PARTS | parts)), 2)
    tensors = [np.zeros(1025, np.uint32), np.zeros(BLOCKS * THREADS, np.uint32)]
    options = Options(races=True, shadow=False, order=Order(warps=seed))
    ran = run(ptx, tensors, block=(THREADS, 1, 1), grid=(BLOCKS, 1, 1), cluster=(clusters, 1, 1), options=options,
              lines=ptx_lines(ptx))  # fmt: skip
    if ran.execution.fault is None and not parts.get("look", "ld").startswith("mov"):
        assert np.array_equal(tensors[1], np.roll(np.arange(BLOCKS * THREADS), -THREADS))
    return ptx, ran.execution.fault


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", RIGHT)
def test_blocks_that_meet_are_ordered(name: str, seed: int) -> None:
    assert fault_in(RIGHT[name], seed)[1] is None


@pytest.mark.parametrize("name", WRONG)
def test_blocks_that_do_not_are_not(name: str) -> None:
    ptx, fault = fault_in(WRONG[name])
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert "with no order between" in fault.message and fault.line == line_of(ptx, "FAULT")
    assert f"(line {line_of(ptx, 'EARLIER')}, " in fault.message


@pytest.mark.parametrize("scope", ["cta", "cluster"])
def test_an_arrival_for_a_smaller_scope_races_with_the_others(scope: str) -> None:
    _, fault = fault_in({"arrive": PARTS["arrive"].replace("gpu", scope)})
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert f"`atom.global.add.release.{scope}.u32" in fault.message


@pytest.mark.parametrize("scope", ["cta", "cluster"])
def test_so_does_a_look_for_one(scope: str) -> None:
    ptx, fault = fault_in({"look": PARTS["look"].replace("gpu", scope)})
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert fault.line == next(n for n, line in enumerate(ptx.split("\n"), 1) if f"ld.global.acquire.{scope}" in line)


LAST_BLOCK = """
  mov.u32 %r5, %tid.x; setp.ne.u32 %p1, %r5, 0; @%p1 bra END;
  mov.u32 %r6, %ctaid.x; mul.wide.u32 %rd3, %r6, 4; add.s64 %rd3, %rd1, %rd3; add.s64 %rd4, %rd1, 4096;
  st.global.b32 [%rd3], %r6;
  ATOM %r7, [%rd4], 1;
  setp.ne.u32 %p2, %r7, 3; @%p2 bra END;
  ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd1];
  add.s32 %r10, %r10, %r11; add.s32 %r12, %r12, %r13; add.s32 %r10, %r10, %r12; st.global.b32 [%rd2], %r10;
  st.global.b32 [%rd4], 0;
END:
  ret;"""
TICKETS = {
    "acquire and release": ("atom.global.add.acq_rel.gpu.u32", True),
    "fences": ("fence.acq_rel.gpu; atom.global.add.u32 %r7, [%rd4], 1; fence.acq_rel.gpu; mov.b32 %r9, 0; //", True),
    "release": ("atom.global.add.release.gpu.u32", False),
    "acquire": ("atom.global.add.acquire.gpu.u32", False),
    "relaxed": ("atom.global.add.relaxed.gpu.u32", False),
}


@pytest.mark.parametrize("lanes", [64, 8192])
@pytest.mark.parametrize("name", TICKETS)
def test_the_last_of_the_blocks_knows_of_all(name: str, lanes: int) -> None:
    """Whether they run together or one after another (``lanes``)."""
    atom, right = TICKETS[name]
    tensors = [np.zeros(1025, np.uint32), np.zeros(1, np.uint32)]
    ptx = kernel(LAST_BLOCK.replace("ATOM", atom).replace("END:", "END: fence.acq_rel.gpu;"), 2)
    ran = run(ptx, tensors, block=(64, 1, 1), grid=(4, 1, 1), options=Options(races=True, lanes=lanes, shadow=False))
    fault = ran.execution.fault
    if right:
        assert fault is None and tensors[1][0] == 6 and tensors[0][1024] == 0, fault
    else:
        assert fault is not None and "reads what block (0, 0, 0) wrote, byte 0 of t0" in fault.message, fault


@pytest.mark.parametrize("clock", [0, 1])
@pytest.mark.parametrize("name", TICKETS)
def test_in_a_grid_of_many_warps_order_is_followed_for_some_blocks(name: str, clock: int) -> None:
    """The first four are read, of which one always is followed; and the twin is right whichever are."""
    atom, right = TICKETS[name]
    tensors = [np.zeros(1025, np.uint32), np.zeros(1, np.uint32)]
    body = LAST_BLOCK.replace("ATOM", atom).replace("END:", "END: fence.acq_rel.gpu;").replace("%r7, 3;", "%r7, 599;")
    options = Options(races=True, shadow=False, order=Order(seed=clock, clock=clock))
    fault = run(kernel(body, 2), tensors, block=(64, 1, 1), grid=(600, 1, 1), options=options).execution.fault
    if right:
        assert fault is None and tensors[1][0] == 6, fault
    else:
        assert fault is not None and "reads what block (0, 0, 0) wrote, byte 0 of t0" in fault.message, fault


def test_two_clusters_meet_as_blocks_do() -> None:
    assert fault_in({}, clusters=2)[1] is None
    assert fault_in(WRONG["a relaxed arrival"], clusters=2)[1] is not None


# Thread 0 leaves something in shared memory for the second warp, or for the other block of its cluster.
WITHIN = """
  @%p2 st.shared.b32 [%r3+4], 0; {init}
  @!%p1 bra LOOKS;
  @!%p2 bra END;
  st.shared.b32 [%r3], %r5;
  {before}
  {set}
  bra END;
LOOKS:
  {rank}
SPIN:
  {look}
  setp.eq.u32 %p5, %r7, 0; @%p5 bra SPIN;
  {after}
  ld.shared{other}.b32 %r8, [%r10];  // FAULT
END:
  {end}
  membar.gl;
"""
BLOCK = {
    "init": "bar.sync 0;", "rank": "mov.u32 %r10, %r3;", "look": "ld.acquire.cta.shared.b32 %r7, [%r10+4];",
    "after": "", "other": "", "before": "", "set": "st.release.cta.shared.b32 [%r3+4], 1;", "end": "",
}  # fmt: skip
CLUSTER_MET = "barrier.cluster.arrive; barrier.cluster.wait;"
CLUSTER = BLOCK | {
    "init": CLUSTER_MET, "end": CLUSTER_MET, "other": "::cluster",
    "rank": "mov.u32 %r9, %cluster_ctarank; xor.b32 %r9, %r9, 1; mapa.shared::cluster.u32 %r10, %r3, %r9;",
    "look": "ld.acquire.cluster.shared::cluster.b32 %r7, [%r10+4];",
    "set": "st.release.cluster.shared.b32 [%r3+4], 1;",
}  # fmt: skip
BY_FENCES = {
    "look": "ld.volatile.shared.b32 %r7, [%r10+4];", "after": "fence.acq_rel.cta;", "before": "fence.acq_rel.cta;",
    "set": "st.volatile.shared.b32 [%r3+4], 1;",
}  # fmt: skip
RIGHT_WITHIN = {"release and acquire": BLOCK, "fences": BLOCK | BY_FENCES, "a cluster": CLUSTER}
WRONG_WITHIN = {
    "a relaxed store": BLOCK | {"set": BLOCK["set"].replace("release", "relaxed")},
    "a relaxed look": BLOCK | {"look": BLOCK["look"].replace("acquire", "relaxed")},
    "no fence before": BLOCK | BY_FENCES | {"before": ""},
    "no fence after": BLOCK | BY_FENCES | {"after": ""},
    "the fence behind the flag": BLOCK | BY_FENCES | {"before": "", "set": BY_FENCES["set"] + " fence.acq_rel.cta;"},
}
FOR_THE_BLOCK = {
    "a store": CLUSTER | {"set": BLOCK["set"]},
    "a look": CLUSTER | {"look": CLUSTER["look"].replace("acquire.cluster", "acquire.cta")},
    "a relaxed look and a fence": CLUSTER
    | {"look": CLUSTER["look"].replace("acquire.cluster", "relaxed.cta"), "after": "fence.acq_rel.cluster;"},
}


@pytest.mark.parametrize("name", RIGHT_WITHIN)
def test_a_flag_in_shared_memory_orders(name: str) -> None:
    parts = RIGHT_WITHIN[name]
    ptx = text(WITHIN.format(**parts), fixed=True)
    assert fault_in_shared(ptx, 1 + ("mapa" in parts["rank"]), threads=64) is None


@pytest.mark.parametrize("name", WRONG_WITHIN)
def test_one_that_orders_too_little_is_found(name: str) -> None:
    parts = WRONG_WITHIN[name]
    ptx = text(WITHIN.format(**parts), fixed=True)
    fault = fault_in_shared(ptx, 1 + ("mapa" in parts["rank"]), threads=64)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert "a race: reads byte 0 of shared memory, which thread (0, 0, 0)" in fault.message
    assert fault.line == line_of(ptx, "FAULT")


@pytest.mark.parametrize("name", FOR_THE_BLOCK)
def test_a_flag_of_one_block_races_in_a_cluster(name: str) -> None:
    """Strong operations whose scopes do not take in both threads are as plain ones."""
    fault = fault_in_shared(text(WITHIN.format(**FOR_THE_BLOCK[name]), fixed=True), 2, threads=64)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert "a race: reads byte 4 of shared memory, which thread (0, 0, 0) of block" in fault.message
