"""Programs that load from L1, or store, with a stride between lanes: what one warp's access takes on a GPU.

    python -m benchmarks.perfmodel.strided_accesses write FOLDER          (needs the DSL's assembler; no GPU; seconds)
    python -m benchmarks.perfmodel.counters_on_gpu time FOLDER OUT.json   (a GPU, and torch; less than a minute)
    python -m benchmarks.perfmodel.strided_accesses show OUT.json         (no GPU)

One block of 32 warps a multiprocessor. The time model has two cycles for each line of 128 bytes that an access touches;
a scan whose threads have 32 to 128 bytes each (benchmarks/foreign_kernels/p5_masked_cumsum.py.txt) is slower than that,
and so is a sum of two tensors by 2 bytes a thread. Of each access there are programs with several numbers of rounds:
the slope of their times is one round. On an H200 (results/strided_accesses_on_gpu.json, 2026-11-24) loads from L1 take
1.0 cycle a line, stores to L2 9 to 15 bytes of whole sectors a cycle: the former does not explain it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.harness import command_line, read_json
from benchmarks.perfmodel.cluster_waits import slope_us
from benchmarks.perfmodel.counters_cases import store_timed
from cutegen_lab.core.artifact import Build
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.roofline import GPUS
from tests.emulator.ptx_kernel import build, kernel

BLOCKS, THREADS, WARPS = 132, 1024, 32
ROUNDS = (64, 256, 1024)
_LOADS = {
    16: "ld.global.v4.b32 {%r10,%r11,%r12,%r13}, [%rd6]; xor.b32 %r10, %r10, %r11; xor.b32 %r12, %r12, %r13;"
    " xor.b32 %r20, %r20, %r10; xor.b32 %r20, %r20, %r12;",
    2: "ld.global.b16 %rs1, [%rd6]; cvt.u32.u16 %r10, %rs1; xor.b32 %r20, %r20, %r10;",
}
_STORES = {
    16: "st.global.v4.b32 [%rd6], {%r20,%r21,%r20,%r21};",
    2: "cvt.u16.u32 %rs1, %r21; st.global.b16 [%rd6], %rs1;",
}
_BODY = """
  mov.u32 %r4, %tid.x; mul.lo.u32 %r6, %r4, {stride}; mov.u32 %r20, 0; mov.u32 %r21, 0;
{before}
LOOP:
{access}
  add.s32 %r21, %r21, 1; setp.lt.s32 %p1, %r21, {rounds};
  @%p1 bra LOOP;
  setp.lt.s32 %p5, %r1, 32;
  mul.wide.s32 %rd5, %r1, 4; add.s64 %rd5, %rd2, %rd5;
  @%p5 st.global.b32 [%rd5], %r20;
  ret;
"""
# Each round a warp loads what the next one loaded before: a load whose address stays might be moved out of the loop.
_NEXT = """  add.s32 %r6, %r6, {step}; and.b32 %r6, %r6, {mask}; cvt.u64.u32 %rd6, %r6; add.s64 %rd6, %rd1, %rd6;
"""
_OWN = (
    """  mad.lo.u32 %r7, %r2, {region}, %r6; add.s32 %r7, %r7, 128; cvt.u64.u32 %rd6, %r7; add.s64 %rd6, %rd2, %rd6;"""
)


@dataclass(frozen=True)
class Access:
    """``width`` bytes a lane, ``stride`` bytes from lane to lane."""

    kind: str
    width: int
    stride: int

    @property
    def group(self) -> str:
        return f"strided-{self.kind}-{self.width}-{self.stride}"


ACCESSES = tuple(
    Access(kind, width, stride)
    for kind in ("load", "store")
    for width, strides in ((16, (16, 32, 64, 128)), (2, (2, 4)))
    for stride in strides
)


def program(access: Access, rounds: int) -> tuple[Workload, Build]:
    """The tensors and the build without a cubin. The output has 32 words for what was loaded, then what was stored."""
    region = THREADS * access.stride
    before, text = "", _NEXT.format(step=32 * access.stride, mask=region - 1) + "  " + _LOADS[access.width]
    outputs = 32
    if access.kind == "store":
        before, text = _OWN.format(region=region), "  " + _STORES[access.width]
        outputs += BLOCKS * region // 4
    body = _BODY.format(stride=access.stride, before=before, access=text, rounds=rounds)
    data = [np.zeros(region, np.uint8), np.zeros(outputs, np.int32)]
    made = build(kernel(body, 2), data, grid=(BLOCKS, 1, 1), block=(THREADS, 1, 1))
    tensors = (TensorSpec("x", DType.U8, (region,)),), (TensorSpec("o", DType.I32, (outputs,)),)
    return Workload("main", *tensors), replace(made, inputs=1)


def programs() -> Iterator[tuple[str, str, Workload, Build]]:
    """(group, name, tensors, build without a cubin): ``strided-KIND-WIDTH-STRIDE`` and ``…-ROUNDS``."""
    for access in ACCESSES:
        for rounds in ROUNDS:
            yield access.group, f"{access.group}-{rounds}", *program(access, rounds)


def write(folder: Path) -> None:
    store_timed(folder, programs())


def cycles(out: Path) -> dict[str, float]:
    """Of each access, cycles of its multiprocessor that one warp's takes."""
    data = read_json(out)
    gpu = next(gpu for name, gpu in GPUS.items() if name in data["device"])
    found = {}
    for group, times in data["times_us"].items():
        one_us = slope_us({int(name.rpartition("-")[2]): us for name, us in times.items()})
        found[group] = one_us * gpu.clock_hz / 1e6 / WARPS
    return found


def show(out: Path) -> None:
    for group, each in cycles(out).items():
        print(f"{group:24} {each:6.1f} cycles a warp's access")


if __name__ == "__main__":
    command_line(write, show)
