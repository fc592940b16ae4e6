"""A kernel with a tensor map, two tensors, 8 KB of shared memory and an mbarrier, for tests of bulk copies.

%rd1: the tensor map, %rd2 and %rd3: the tensors. %r1: the thread, %p1: the first one, %r2: the shared memory, %r3: the
mbarrier, which one thread is to arrive at. %r4: the block's rank in its cluster.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cutegen_lab.core.artifact import Relocation
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.emulator import Options, Result, run_plan
from tests.emulator.ptx_kernel import HEADER, REGISTERS, build

BEGIN = """
  mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; ld.param.b64 %rd2, [p0]; ld.param.b64 %rd3, [p1];
  mov.u32 %r1, %tid.x; mov.b32 %r2, tile; mov.b32 %r3, bar; setp.eq.s32 %p1, %r1, 0; mov.u32 %r4, %cluster_ctarank;
  @!%p1 bra MADE;
  mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
MADE:
  bar.sync 0;
"""
EXPECT = "  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd20, [%r3], BYTES;\n"
WAIT = """
WAITS:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra WAITS;
"""
OUT = """
  mul.wide.u32 %rd4, %r1, 16; add.s64 %rd5, %rd3, %rd4; shl.b32 %r5, %r1, 4; add.s32 %r5, %r2, %r5;
  ld.shared.v4.b32 {%r6, %r7, %r8, %r9}, [%r5]; st.global.v4.b32 [%rd5], {%r6, %r7, %r8, %r9}; ret;
"""
IN = """
  mul.wide.u32 %rd4, %r1, 16; add.s64 %rd5, %rd2, %rd4; shl.b32 %r5, %r1, 4; add.s32 %r5, %r2, %r5;
  ld.global.v4.b32 {%r6, %r7, %r8, %r9}, [%rd5]; st.shared.v4.b32 [%r5], {%r6, %r7, %r8, %r9};
  fence.proxy.async.shared::cta; bar.sync 0;
"""
STORED = "  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;\n"
KINDS = {"u8": 0, "u16": 1, "u32": 2, "s32": 3, "u64": 4, "s64": 5, "f16": 6, "f32": 7, "f64": 9, "bf16": 10}


def encode(
    kind: str, sizes: Sequence[int], strides: Sequence[int], box: Sequence[int], steps: Sequence[int] = (),
    swizzle: int = 0, nan: bool = False,
) -> bytes:  # fmt: skip
    """A tensor map, whose address is filled in by a relocation. Innermost dimension first; ``strides`` without it."""
    rank = len(sizes)
    flags = 2 | rank - 1 << 4 | KINDS[kind] << 7 | swizzle << 13 | nan << 15
    low = [s >> 4 & 0xFFFFFFFF for s in strides] + [0] * (5 - rank)
    high = sum((s >> 36) << 4 * i for i, s in enumerate(strides))
    words = struct.pack("<3I4II5I", 0, 0, flags, *low, high, *(n - 1 for n in sizes), *[0] * (5 - rank))
    packed = sum((s - 1) << 3 * i for i, s in enumerate(steps or [1] * rank)).to_bytes(3, "little")
    return (words + packed + bytes(n - 1 for n in box)).ljust(64, b"\0").ljust(128, b"\xee")


MAP = encode("u32", (16, 8), (64,), (16, 8))


def run(
    body: str, tmap: bytes, tensors: Sequence[np.ndarray], mapped: int = 0, cluster: int = 1, threads: int = 32,
    inputs: int | None = 1,
) -> Result:  # fmt: skip
    shared = ".shared .align 1024 .b8 tile[8192]; .shared .align 8 .b8 bar[8];"
    params = ".param .align 64 .b8 map[128], .param .b64 p0, .param .b64 p1"
    ptx = f"{HEADER}{shared}\n.visible .entry k({params})\n{{{REGISTERS}\n{BEGIN}{body}\n}}\n"
    made = build(ptx, tensors, block=(threads, 1, 1), grid=(cluster, 1, 1), cluster=(cluster, 1, 1))
    moved = (Relocation(0, 0, mapped, 0), Relocation(1, 0, 0, 0), Relocation(2, 0, 1, 0))
    launch = replace(made.plan.launches[0], params=(tmap, bytes(8), bytes(8)), relocations=moved)
    made = replace(made, plan=replace(made.plan, launches=(launch,)))
    specs = [TensorSpec(f"t{i}", DType.U8, (t.nbytes,)) for i, t in enumerate(tensors)]
    views = [memoryview(t.reshape(-1).view(np.uint8)) for t in tensors]
    return run_plan(made, specs, views, threading.Event(), Options(shadow=True, races=True), inputs)
