"""Waits, arrivals and fences order the lane that executes them, not its warp, until the warp's lanes meet (PTX ISA 8.9
orders threads)."""
# ruff: noqa: E501 - tables of kernels

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, Order
from tests.emulator.planted import line_of, ptx_lines, variant
from tests.emulator.ptx_kernel import kernel, run

# 64 threads. %p1: the first lane of each warp, %p2: the first warp, %p3: the first thread, %p4: the second. %r2: shared memory, %r4:
# the thread's 4 bytes, %r6: those of the same lane of the other warp, %r7: those of the next lane; %r8: an mbarrier
# for one arrival. %rd3: the thread's 4 bytes of memory.
BEGIN = """
  mov.u32 %r1, %tid.x; and.b32 %r5, %r1, 31; setp.eq.u32 %p1, %r5, 0; setp.lt.u32 %p2, %r1, 32;
  setp.eq.u32 %p3, %r1, 0; setp.eq.u32 %p4, %r1, 1; mov.b32 %r2, tile; mov.b32 %r8, bar; shl.b32 %r4, %r1, 2; xor.b32 %r6, %r4, 128;
  xor.b32 %r7, %r4, 4; add.s32 %r4, %r2, %r4; add.s32 %r6, %r2, %r6; add.s32 %r7, %r2, %r7;
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3;
  @%p3 mbarrier.init.shared.b64 [%r8], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
"""
ONLY = "the first lane of each warp, where it is wrong"
SYNC = "bar.warp.sync 0xffffffff;"
ARRIVE = "@%p1 mbarrier.arrive.shared.b64 %rd9, [%r8];"
LOAD = """@%p3 mbarrier.arrive.expect_tx.shared.b64 %rd20, [%r8], 256;
  @%p3 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r8];  // {}
"""
READ_OTHER = "ld.shared.b32 %r9, [%r6];  // FAULT\n"
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd1+1024], [%r2], 128;"

RELEASED = "@!%p2 bra C; st.global.b32 [%rd3], 5;  // EARLIER\n {sync} @%p3 st.release.gpu.global.b32 [%rd1+512], 1; bra END; C:"
ACQUIRE = "A: ld.acquire.gpu.global.b32 %r9, [%rd1+512]; setp.ne.u32 %p9, %r9, 1; @%p9 bra A;"


def wait(guard: str, name: str = "A", parity: int = 0) -> str:
    """``guard``: a predicate whose lanes alone wait."""
    skip = f"@!{guard} bra {name}X;" if guard else ""
    skip = f"<@!%p1 bra {name}X;|>" if guard == ONLY else skip
    return f"{skip} {name}: mbarrier.try_wait.parity.shared.b64 %p9, [%r8], {parity}; @!%p9 bra {name};\n{name}X:\n"


PLANTED = {
    "one lane waits": f"@!%p2 bra W; st.shared.b32 [%r4], %r1;  // EARLIER\n {SYNC} {ARRIVE} bra END; W: {wait('%p1')} <{SYNC}> {READ_OTHER}",
    "one lane waits for a phase long over": f"@!%p2 bra W; st.shared.b32 [%r4], %r1;  // EARLIER\n {SYNC} {ARRIVE} bra END; W: {wait(ONLY)} {READ_OTHER}",
    "one lane waits for a load": f"{LOAD.format('EARLIER')} {wait(ONLY)} {READ_OTHER}",
    "one lane arrives": f"@!%p2 bra W; st.shared.b32 [%r4], %r1;  // EARLIER\n <{SYNC}> {ARRIVE} bra END; W: {wait('')} {READ_OTHER}",
    "the leader arrives after others have read": f"st.shared.b32 [%r4], 0; bar.sync 0; @!%p2 bra W; ld.shared.b32 %r9, [%r4];  // EARLIER\n <{SYNC}> {ARRIVE} bra END; W: {wait('')} st.shared.b32 [%r6], %r1;  // FAULT\n",
    "half of a warp has met": f"@!%p2 bra W; st.shared.b32 [%r4], %r1;  // EARLIER\n setp.lt.u32 %p5, %r1, 16; <@!%p5 bra N; bar.warp.sync 0x0000ffff; N: |{SYNC}> {ARRIVE} bra END; W: {wait('')} {READ_OTHER}",
    "an arrival is no meeting": f"st.shared.b32 [%r4], %r1;  // EARLIER\n <@%p3 mbarrier.arrive.shared.b64 %rd9, [%r8];|{SYNC}> ld.shared.b32 %r9, [%r7];  // FAULT\n",
    "a fence is no meeting": f"st.shared.b32 [%r4], %r1;  // EARLIER\n <fence.acq_rel.cta;|{SYNC}> ld.shared.b32 %r9, [%r7];  // FAULT\n",
    "a proxy fence of one lane": f"@!%p2 bra END; st.shared.b32 [%r4], %r1;  // EARLIER\n <@%p1|> fence.proxy.async.shared::cta; {SYNC} @%p1 {STORE}  // FAULT\n @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;",
    "fenced and not met": f"@!%p2 bra END; st.shared.b32 [%r4], %r1;  // EARLIER\n fence.proxy.async.shared::cta; <{SYNC}> @%p1 {STORE}  // FAULT\n @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;",
    "another lane waits for a bulk group": f"@!%p2 bra END; @%p3 {STORE}  // EARLIER\n @%p3 cp.async.bulk.commit_group; <@%p4|> cp.async.bulk.wait_group.read 0; {SYNC} st.shared.b32 [%r4], 7;  // FAULT\n @%p3 cp.async.bulk.wait_group 0;",
    "two lanes' groups, one waited for": f"@!%p2 bra END; @%p3 {STORE}  // EARLIER\n @%p3 cp.async.bulk.commit_group; @%p4 {STORE.replace('+1024', '+1152').replace('[%r2]', '[%r2+128]')}\n @%p4 cp.async.bulk.commit_group; <@%p4|> cp.async.bulk.wait_group.read 0; {SYNC} st.shared.b32 [%r4], 7;  // FAULT\n @%p3 cp.async.bulk.wait_group 0;",
    "one lane waits for its group": f"@!%p2 bra END; @%p3 {STORE}  // EARLIER\n @%p3 cp.async.bulk.commit_group; @%p3 cp.async.bulk.wait_group.read 0; <{SYNC}> st.shared.b32 [%r4], 7;  // FAULT\n @%p3 cp.async.bulk.wait_group 0;",
    "one lane acquires": f"{RELEASED.format(sync=SYNC)} <@!%p1 bra B;|> {ACQUIRE} B: ld.global.b32 %r9, [%rd3+-128];  // FAULT\n",
    "one lane releases": f"{RELEASED.format(sync=f'<{SYNC}>')} {ACQUIRE} B: ld.global.b32 %r9, [%rd3+-128];  // FAULT\n",
}  # fmt: skip
CLEAN = {
    "each lane arrives, one after another": "@!%p2 bra W; st.shared.b32 [%r4], %r1; mov.u32 %r20, 0; @%p3 mbarrier.inval.shared.b64 [%r8]; @%p3 mbarrier.init.shared.b64 [%r8], 32;"
    + " bar.sync 0;\nN: setp.eq.u32 %p5, %r20, %r5; @%p5 mbarrier.arrive.shared.b64 %rd9, [%r8]; add.s32 %r20, %r20, 1; setp.lt.u32 %p5, %r20, 32; @%p5 bra N; bra END; W: bar.sync 0; " + wait("") + READ_OTHER,
    "lanes meet through an mbarrier": "@!%p2 bra END; @%p3 mbarrier.inval.shared.b64 [%r8]; @%p3 mbarrier.init.shared.b64 [%r8], 32; bar.warp.sync 0xffffffff;"
    + " st.shared.b32 [%r4], %r1; mbarrier.arrive.shared.b64 %rd9, [%r8];" + wait("") + "ld.shared.b32 %r9, [%r7];\n",
    "the lane that waits is the one that reads": f"@!%p2 bra W; st.shared.b32 [%r4], %r1; {SYNC} {ARRIVE} bra END; W: {wait('%p1')} @%p1 {READ_OTHER}",
    "one lane waits, copies and is told": f"@!%p2 bra END; {LOAD.format('')} {wait('%p1')} {SYNC} ld.shared.b32 %r9, [%r4]; {SYNC} {LOAD.format('')} {wait('', 'B', 1)} ld.shared.b32 %r9, [%r4];",
    "each lane waits by itself": f"@!%p2 bra W; st.shared.b32 [%r4], %r1; {SYNC} {ARRIVE} bra END; W: {wait('%p1')} @%p1 bra Y; {wait('', 'B')} Y: {READ_OTHER}",
    "a value goes through a shuffle": f"@!%p2 bra W; st.shared.b32 [%r4], %r1; {SYNC} {ARRIVE} bra END; W: {wait('%p1')} shfl.sync.idx.b32 %r10, %r1, 0, 31, 0xffffffff; {READ_OTHER}",
    "a lane knows what it did before it arrived": f"@%p3 st.shared.b32 [%r2], 3; {ARRIVE.replace('%p1', '%p3')} @%p2 bra END; {wait('')} ld.shared.b32 %r9, [%r2];",
    "two lanes' groups, each its own": f"@!%p2 bra END; @%p3 {STORE}\n @%p3 cp.async.bulk.commit_group; @%p4 {STORE.replace('+1024', '+1152').replace('[%r2]', '[%r2+128]')}\n @%p4 cp.async.bulk.commit_group; @%p4 cp.async.bulk.wait_group.read 0; @%p3 cp.async.bulk.wait_group.read 0; {SYNC} st.shared.b32 [%r4], 7; st.shared.b32 [%r4+128], 8;",
    "one of two lanes' groups is left": f"@!%p2 bra END; @%p3 {STORE}\n @%p3 cp.async.bulk.commit_group; @%p4 {STORE.replace('+1024', '+1152').replace('[%r2]', '[%r2+128]')}\n @%p4 cp.async.bulk.commit_group; @%p4 cp.async.bulk.wait_group.read 0; {SYNC} st.shared.b32 [%r4+128], 8; @%p3 cp.async.bulk.wait_group.read 0;",
}  # fmt: skip


def text(body: str, fixed: bool) -> str:
    declared = ".shared .align 128 .b8 tile[1024]; .shared .align 8 .b8 bar[8];"
    return kernel(BEGIN + variant(body, fixed) + "\nEND:\n  ret;", 1, declared)


def fault_in(ptx: str, warps: int = 0) -> Fault | None:
    tensors = [np.arange(100, 612, dtype=np.uint32)]
    options = Options(races=True, shadow=False, order=Order(warps=warps), budget=20_000)
    return run(ptx, tensors, block=(64, 1, 1), inputs=0, lines=ptx_lines(ptx), options=options).execution.fault


@pytest.mark.parametrize("name", PLANTED)
def test_found(name: str) -> None:
    ptx = text(PLANTED[name], fixed=False)
    fault = fault_in(ptx)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert fault.line == line_of(ptx, "FAULT") and f"(line {line_of(ptx, 'EARLIER')}, " in fault.message


@pytest.mark.parametrize("warps", [0, 3, 8])
@pytest.mark.parametrize("name", PLANTED)
def test_its_clean_twin_is_not_reported(name: str, warps: int) -> None:
    assert fault_in(text(PLANTED[name], fixed=True), warps) is None


@pytest.mark.parametrize("warps", [0, 3, 8])
@pytest.mark.parametrize("name", CLEAN)
def test_what_is_no_race_is_not_reported(name: str, warps: int) -> None:
    assert fault_in(text(CLEAN[name], fixed=True), warps) is None
