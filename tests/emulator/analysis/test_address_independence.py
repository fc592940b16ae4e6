"""Results may depend neither on tensors' addresses nor on what hardware chooses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cutegen_lab.core.artifact import LaunchPlan
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.analysis.examine import examined
from tests.emulator.ptx_kernel import build, kernel, run

STORE = "  st.global.b32 [%rd2], %r4; ret;"
BRANCH = "  @%p1 bra DONE; st.global.b32 [%rd2], %r1; DONE: ret;"
SHARED = " .shared .align 16 .b8 s[256];"
LOCAL = " .local .align 16 .b8 l[16]; .local .align 8 .b8 l2[16];"
MODULE = ".global .align 8 .b8 g[64];\n.const .align 8 .b8 c[64];\n"

REFUSED = {
    "which tensor lies higher": f"setp.lt.u64 %p1, %rd1, %rd2; {BRANCH}",
    "a high bit": f"shr.u64 %rd3, %rd1, 40; cvt.u32.u64 %r4, %rd3; {STORE}",
    "alignment beyond the contract's": f"and.b64 %rd3, %rd1, 511; setp.eq.s64 %p1, %rd3, 0; {BRANCH}",
    "a remainder": f"rem.u64 %rd3, %rd1, 48; cvt.u32.u64 %r4, %rd3; {STORE}",
    "the address itself": "st.global.b64 [%rd2], %rd1; ret;",
    "its lower half": f"cvt.u32.u64 %r4, %rd1; {STORE}",
    "its upper half": f"mov.b64 {{%r5, %r4}}, %rd1; {STORE}",
    "half of a parameter": f"ld.param.b32 %r4, [p0+4]; {STORE}",
    "a parameter by its address": f"mov.b64 %rd3, p0; cvta.param.u64 %rd3, %rd3; ld.b64 %rd4, [%rd3]; "
    f"cvt.u32.u64 %r4, %rd4; {STORE}",
    "how far apart two tensors are": f"sub.s64 %rd3, %rd1, %rd2; cvt.u32.u64 %r4, %rd3; {STORE}",
    "a table that an address looks up": f"shr.u64 %rd3, %rd1, 24; and.b64 %rd3, %rd3, 4; add.s64 %rd3, %rd2, %rd3; "
    f"ld.global.b32 %r4, [%rd3]; {STORE}",
    "a multiple of an address": f"add.s64 %rd3, %rd1, %rd1; ld.global.b32 %r4, [%rd3]; {STORE}",
    "a predicate kept in a number": f"setp.lt.u64 %p1, %rd1, %rd2; selp.b32 %r4, 1, 0, %p1; {STORE}",
    "a predicate through logic": f"setp.lt.u64 %p1, %rd1, %rd2; and.pred %p1, %p1, %p1; {BRANCH}",
    "a guard": "setp.lt.u64 %p1, %rd1, %rd2; @%p1 st.global.b32 [%rd2], %r1; ret;",
    "a vote": f"setp.lt.u64 %p1, %rd1, %rd2; vote.sync.ballot.b32 %r4, %p1, -1; {STORE}",
    "a float of it": "cvt.rn.f32.u64 %f1, %rd1; st.global.f32 [%rd2], %f1; ret;",
    "an atomic sum": "atom.global.add.u64 %rd3, [%rd2], %rd1; ret;",
    "a reduction": "red.global.add.u64 [%rd2], %rd1; ret;",
    "by way of shared memory": f"mov.u32 %r5, s; st.shared.b64 [%r5], %rd1; ld.shared.b32 %r4, [%r5]; {STORE}",
    "by way of local memory": f"mov.b64 %rd3, l; st.local.b64 [%rd3], %rd1; ld.local.b32 %r4, [%rd3+4]; {STORE}",
    "through another lane": f"cvt.u32.u64 %r5, %rd1; shfl.sync.idx.b32 %r4, %r5, 0, 31, -1; {STORE}",
    "which of two it was": f"setp.lt.u64 %p1, %rd1, %rd2; selp.b64 %rd3, %rd1, %rd2, %p1; "
    f"ld.global.b32 %r4, [%rd3]; {STORE}",
    "which is equal, among several": f"setp.eq.s32 %p2, %r1, 0; selp.b64 %rd3, %rd1, %rd2, %p2; "
    f"setp.eq.s64 %p1, %rd3, %rd1; {BRANCH}",
    "where shared memory begins": f"mov.b64 %rd3, s; cvta.shared.u64 %rd3, %rd3; shr.u64 %rd3, %rd3, 32; "
    f"cvt.u32.u64 %r4, %rd3; {STORE}",
    "where local memory begins": f"mov.b64 %rd3, l; cvta.local.u64 %rd3, %rd3; cvt.u32.u64 %r4, %rd3; {STORE}",
    "how another block's memory is named": f"mov.u32 %r5, s; mapa.shared::cluster.u32 %r4, %r5, 0; {STORE}",
    "how far two blocks' memories are apart": f"mov.u32 %r5, s; mapa.shared::cluster.u32 %r6, %r5, %r1; "
    f"mapa.shared::cluster.u32 %r7, %r5, %r1; sub.s32 %r4, %r6, %r7; {STORE}",
    "a cache policy": f"createpolicy.fractional.L2::evict_last.b64 %rd3, 1.0; setp.eq.s64 %p1, %rd3, 0; {BRANCH}",
    "the state of an mbarrier": f"mov.u32 %r5, s; mbarrier.init.shared.b64 [%r5], 32; "
    f"mbarrier.arrive.shared.b64 %rd3, [%r5]; cvt.u32.u64 %r4, %rd3; {STORE}",
    "the parameters' bytes, copied": "mov.u32 %r5, s; mov.b64 %rd3, p0; cvta.param.u64 %rd3, %rd3; "
    f"cp.async.ca.shared.global [%r5], [%rd3], 8; cp.async.wait_all; ld.shared.b32 %r4, [%r5+4]; {STORE}",
    "how long it sleeps": "cvt.u32.u64 %r4, %rd1; nanosleep.u32 %r4; ret;",
    "an order of sums that may wrap": "mov.b64 %rd5, 0xffff810000000000; add.s64 %rd3, %rd1, %rd5; "
    f"setp.lt.u64 %p1, %rd3, %rd1; {BRANCH}",
    "an order of signed sums that may wrap": "add.s64 %rd3, %rd1, 0x7fff810000000000; "
    f"setp.lt.s64 %p1, %rd3, %rd1; {BRANCH}",
    "an order of sums by a number from memory": "ld.global.b64 %rd5, [%rd1]; add.s64 %rd3, %rd1, %rd5; "
    f"setp.lt.u64 %p1, %rd3, %rd1; {BRANCH}",
    "an order of sums that double": "mov.b64 %rd5, 1; NEXT: shl.b64 %rd5, %rd5, 1; add.s64 %rd3, %rd1, %rd5; "
    f"setp.gt.u64 %p1, %rd3, %rd1; @%p1 bra NEXT; cvt.u32.u64 %r4, %rd5; {STORE}",
    "a carry": "add.cc.u64 %rd3, %rd1, 0xffff810000000000; addc.u64 %rd4, 0, 0; "
    f"cvt.u32.u64 %r4, %rd4; {STORE}",
    "a borrow": f"cvt.u32.u64 %r5, %rd1; sub.cc.u32 %r5, %r5, 99; subc.u32 %r4, 0, 0; {STORE}",
    "whether it saturates": "cvt.sat.u32.u64 %r5, %rd1; cvt.u32.u64 %r6, %rd1; "
    f"sub.s32 %r4, %r5, %r6; {STORE}",
    "whether a place far from it is shared memory": "mov.b64 %rd5, 0xffff810000000000; add.s64 %rd3, %rd1, %rd5; "
    f"isspacep.shared %p1, %rd3; {BRANCH}",
    "how far two variables are apart": "mov.b64 %rd3, g; mov.b64 %rd4, c; sub.s64 %rd3, %rd3, %rd4; "
    f"cvt.u32.u64 %r4, %rd3; {STORE}",
    "how far two local arrays are apart": "mov.b64 %rd3, l; mov.b64 %rd4, l2; sub.s64 %rd3, %rd3, %rd4; "
    f"cvt.u32.u64 %r4, %rd3; {STORE}",
    "how a variable is aligned": f"mov.b64 %rd3, g; and.b64 %rd3, %rd3, 8; cvt.u32.u64 %r4, %rd3; {STORE}",
    "how a local array is aligned": "mov.b64 %rd3, l2; or.b64 %rd4, %rd3, 8; sub.s64 %rd3, %rd4, %rd3; "
    f"cvt.u32.u64 %r4, %rd3; {STORE}",
    "how a parameter is aligned": f"mov.b64 %rd3, p1; and.b64 %rd3, %rd3, 8; cvt.u32.u64 %r4, %rd3; {STORE}",
    "what lies after a parameter": f"ld.param.b32 %r4, [p0+12]; {STORE}",
    "an order modulo 2^32": f"cvt.u32.u64 %r4, %rd1; add.s32 %r5, %r4, 64; setp.lt.u32 %p1, %r4, %r5; {BRANCH}",
}  # fmt: skip

ALLOWED = {
    "alignment that the contract gives": f"and.b64 %rd3, %rd1, 15; cvt.u32.u64 %r4, %rd3; {STORE}",
    "its offset": f"add.s64 %rd3, %rd1, 24; sub.s64 %rd4, %rd3, %rd1; cvt.u32.u64 %r4, %rd4; {STORE}",
    "its offset modulo 2^32": f"add.s64 %rd3, %rd1, 24; cvt.u32.u64 %r5, %rd3; cvt.u32.u64 %r6, %rd1; "
    f"sub.s32 %r4, %r5, %r6; {STORE}",
    "a pointer that is counted to its end": "add.s64 %rd4, %rd1, 64; mov.b64 %rd3, %rd1; mov.b32 %r4, 0; "
    "NEXT: ld.global.b32 %r5, [%rd3]; add.s32 %r4, %r4, %r5; add.s64 %rd3, %rd3, 4; setp.lt.u64 %p1, %rd3, %rd4; "
    f"@%p1 bra NEXT; {STORE}",
    "a pointer that a loop over rows moves on": "mul.wide.u32 %rd5, %r1, 4096; add.s64 %rd3, %rd1, %rd5; "
    "add.s64 %rd4, %rd1, 64; mov.b32 %r4, 0; NEXT: setp.ge.u64 %p1, %rd3, %rd4; @%p1 bra DONE; "
    "ld.global.b32 %r5, [%rd3]; add.s32 %r4, %r4, %r5; add.s64 %rd3, %rd3, 2048; bra NEXT; "
    f"DONE: {STORE}",
    "a carry of numbers": f"add.cc.u32 %r5, %r1, -1; addc.u32 %r4, 0, 0; and.b32 %r4, %r4, 0; {STORE}",
    "low bits of an aligned array": f"mov.b64 %rd3, l; or.b64 %rd4, %rd3, 8; st.local.b32 [%rd4], %r1; "
    f"ld.local.b32 %r5, [%rd3+8]; and.b32 %r4, %r5, 0; {STORE}",
    "one of two tensors by an index": "setp.eq.s32 %p1, %r1, 7; selp.b64 %rd3, %rd1, %rd2, %p1; @!%p1 bra DONE; "
    "ld.global.b32 %r4, [%rd3]; st.global.b32 [%rd2], %r4; DONE: ret;",
    "an address rounded to the contract's alignment": "add.s64 %rd3, %rd1, 20; and.b64 %rd3, %rd3, -16; "
    f"or.b64 %rd3, %rd3, 4; ld.global.b32 %r4, [%rd3]; {STORE}",
    "a pointer from another lane": "shfl.sync.idx.b32 %r5, %r1, 0, 31, -1; mul.wide.u32 %rd3, %r5, 4; "
    f"add.s64 %rd3, %rd1, %rd3; ld.global.b32 %r4, [%rd3]; {STORE}",
    "a policy that is one": "createpolicy.fractional.L2::evict_last.b64 %rd3, 1.0; "
    f"ld.global.L2::cache_hint.b32 %r4, [%rd1], %rd3; {STORE}",
    "a state that is waited for": "mov.u32 %r5, s; setp.ne.s32 %p2, %r1, 0; @%p2 bra ON; "
    "mbarrier.init.shared.b64 [%r5], 32; ON: bar.sync 0; mbarrier.arrive.shared.b64 %rd3, [%r5]; "
    f"WAIT: mbarrier.test_wait.shared.b64 %p1, [%r5], %rd3; @!%p1 bra WAIT; mov.b32 %r4, 1; {STORE}",
    "generic shared memory": "mov.b64 %rd3, s; cvta.shared.u64 %rd3, %rd3; mul.wide.u32 %rd4, %r1, 4; "
    "add.s64 %rd3, %rd3, %rd4; st.b32 [%rd3], %r1; ld.b32 %r4, [%rd3]; and.b32 %r4, %r4, 0; "
    f"cvta.to.shared.u64 %rd3, %rd3; {STORE}",
    "this block's memory by its rank": f"mov.u32 %r5, s; mapa.shared::cluster.u32 %r6, %r5, 0; "
    f"st.shared.b32 [%r5], %r3; bar.sync 0; ld.shared::cluster.b32 %r4, [%r6]; {STORE}",
}  # fmt: skip


def ran(body: str):  # type: ignore[no-untyped-def]
    tensors = [np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)]
    return run(kernel(body, 2, SHARED + LOCAL, MODULE), tensors, inputs=1, block=(32, 1, 1)).execution.fault


@pytest.mark.parametrize("what", REFUSED)
def test_an_answer_may_not_depend_on(what: str) -> None:
    fault = ran(REFUSED[what])
    assert fault is not None and fault.verdict is Verdict.CONTRACT, fault
    assert "depends on" in fault.message and fault.instruction


@pytest.mark.parametrize("what", ALLOWED)
def test_a_kernel_may_use(what: str) -> None:
    assert ran(ALLOWED[what]) is None


@pytest.mark.parametrize("parameter", ["ld.param.b32 %r4, [%rd3+8]", "cvta.param.u64 %rd3, %rd3; ld.b32 %r4, [%rd3+8]"])
def test_beyond_a_parameter_without_pointers_lie_others(parameter: str) -> None:
    ptx = kernel(f"mov.b64 %rd3, n; {parameter}; st.global.b32 [%rd1], %r4; ret;", 1)
    ptx = ptx.replace("(.param .b64 p0)", "(.param .b64 n, .param .b64 p0)")
    made = build(ptx, [np.zeros(64, np.uint8)], block=(32, 1, 1))
    moved = (replace(made.plan.launches[0].relocations[0], param=1),)
    launch = replace(made.plan.launches[0], params=(bytes(8), bytes(8)), relocations=moved)
    fault = examined(replace(made, plan=LaunchPlan((launch,))), ["t0"])
    assert fault is not None and fault.verdict is Verdict.CONTRACT


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("ld.global.b64 %rd3, [at]; cvt.u32.u64 %r4, %rd3;", ".global .align 8 .u64 at = g;"),
        ("ld.global.b64 %rd3, [at]; cvt.u32.u64 %r4, %rd3;", ".global .align 8 .u64 at[2] = {3, generic(g)};"),
        ("fns.b32 %r4, %r1, 0, 1;", ""),
        ("ts: .branchtargets A, B; brx.idx %r1, ts; A: B:", ""),
    ],
)
def test_what_cannot_be_read_is_not_taken_for_sound(body: str, before: str) -> None:
    ptx = kernel(f"{body} {STORE}", 2, before=f".global .align 8 .b8 g[64];\n{before}")
    fault = examined(build(ptx, [np.zeros(64, np.uint8)] * 2, block=(32, 1, 1)), ["t0", "t1"])
    assert fault is not None and fault.verdict is Verdict.UNSUPPORTED


def test_variables_may_begin_with_numbers_of_all_kinds() -> None:
    values = ".global .align 8 .f64 a = 0d3FF0000000000000;\n.const .align 4 .f32 b[2] = {0f3F800000, 0f40000000};\n"
    tensors = [np.zeros(64, np.uint32)]
    body = "ld.global.b64 %rd3, [a]; ld.const.v2.b32 {%r5, %r6}, [b]; st.global.b64 [%rd1], %rd3; "
    assert run(kernel(f"{body} st.global.v2.b32 [%rd1+8], {{%r5, %r6}}; ret;", 1, before=values), tensors,
               block=(1, 1, 1)).execution.fault is None  # fmt: skip
    assert tensors[0].view(np.float64)[0] == 1.0 and list(tensors[0].view(np.float32)[2:4]) == [1.0, 2.0]


COPY = "ld.param.b64 %rd4, [map]; ld.param.b64 %rd5, [map+8]; st.global.v2.b64 [%rd1], {%rd4, %rd5};"
GENERIC = (
    "mov.b64 %rd6, map; cvta.param.u64 %rd6, %rd6; ld.v2.b64 {%rd4, %rd5}, [%rd6]; st.v2.b64 [%rd1], {%rd4, %rd5};"
)
FENCE = "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;"


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        (f"{COPY} {FENCE}", True), (f"{GENERIC} {FENCE}", True), (COPY, False), (GENERIC, False),
        (f"{FENCE} ld.param.b64 %rd4, [map]; and.b64 %rd4, %rd4, 64; st.global.b64 [%rd1], %rd4;", False),
        (f"{FENCE} ld.param.b64 %rd4, [map]; setp.eq.s64 %p1, %rd4, 0; @%p1 st.global.b64 [%rd1], 1;", False),
        ("ld.param.b64 %rd4, [map+8]; st.global.b64 [%rd1], %rd4;", True),
    ],
)  # fmt: skip
def test_a_tensor_map_may_be_copied_to_where_it_is_changed(body: str, allowed: bool) -> None:
    ptx = kernel(f"{body} ret;", 1).replace("(.param .b64 p0)", "(.param .b64 p0, .param .align 64 .b8 map[128])")
    made = build(ptx, [np.zeros(256, np.uint8)] * 2, block=(32, 1, 1))
    launch = replace(made.plan.launches[0], params=(bytes(8), bytes(128)))
    fault = examined(replace(made, plan=LaunchPlan((launch,))), ["t0", "t1"])
    assert (fault is None) == allowed, fault


@pytest.mark.parametrize(("load", "of", "stale"), [("ld.global.nc", 2, True), ("ldu.global", 2, True),
                                                   ("ld.global", 2, False), ("ld.global.nc", 1, False)])  # fmt: skip
def test_what_a_kernel_writes_is_not_loaded_past_it(load: str, of: int, stale: bool) -> None:
    fault = ran(
        f"mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; st.global.b32 [%rd4], %r1; "
        f"add.s64 %rd5, %rd{of}, %rd3; {load}.b32 %r4, [%rd5]; st.global.b32 [%rd4+128], %r4; ret;"
    )
    assert (fault is not None) == stale, fault
    assert fault is None or (fault.verdict is Verdict.CONTRACT and "a load by .nc of t1" in fault.message)


@pytest.mark.parametrize(
    "body",
    [
        "atom.global.add.u32 %r4, [c2], 1; @%p1 st.global.b32 [%rd2], %r4;",
        "red.global.add.u32 [c2], 1;",
        "mov.b64 %rd3, c2; cvta.global.u64 %rd3, %rd3; setp.eq.s32 %p1, %r1, 0; @%p1 st.b32 [%rd3+4], %r1;",
        "mov.b64 %rd3, c2; setp.eq.s32 %p1, %r1, 77; selp.b64 %rd3, %rd3, %rd2, %p1; st.global.b32 [%rd3], %r1;",
        "mov.b64 %rd3, c2; mov.u32 %r5, s; cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r5], 16;",
    ],
)
def test_a_variable_of_the_module_keeps_nothing_from_launch_to_launch(body: str) -> None:
    ptx = kernel(f"{body} ret;", 2, SHARED, ".global .align 16 .b8 c2[64];\n")
    fault = examined(build(ptx, [np.zeros(64, np.uint8)] * 2, block=(32, 1, 1)), ["t0", "t1"])
    assert fault is not None and fault.verdict is Verdict.CONTRACT and "at the next launch" in fault.message


def test_it_is_said_which_tensor_and_where() -> None:
    fault = ran(f"shr.u64 %rd3, %rd1, 24; and.b64 %rd3, %rd3, 1; setp.eq.s64 %p1, %rd3, 0; {BRANCH}")
    assert "a branch depends on the address of t0" in fault.message and "bra" in fault.instruction
