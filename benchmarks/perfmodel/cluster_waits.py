"""Programs that do nothing but wait for their cluster, for what one such wait takes on a GPU.

``barrier``: every warp of 256-thread blocks arrives at the cluster's barrier and waits there. ``exchange``: one warp a
block sends four bytes to each block of its cluster (itself too) by ``st.async`` and waits for theirs at an mbarrier, as
the templates exchange partial results. Of each there are programs with several numbers of waits: the slope of their
times over these numbers is one wait, without the launch and what comes before (:func:`slope_us`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import linear_regression

import numpy as np

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from tests.emulator.ptx_kernel import build, kernel

CLUSTERS, WAITS = (2, 4, 8, 16), (8, 40, 136)
BLOCKS = 64  # no more than fit beside each other, one a multiprocessor, for every size of cluster
_LOOP = """
  mov.u32 %r4, %tid.x; mov.u32 %r5, %cluster_ctarank; mov.b32 %r20, 0; mov.b32 %r21, 0; setp.eq.s32 %p2, %r4, 0;
{before}
LOOP:
{wait}
  add.s32 %r20, %r20, 1; setp.lt.s32 %p1, %r20, {waits};
  @%p1 bra LOOP;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  setp.lt.s32 %p5, %r1, 32;
  mul.wide.s32 %rd5, %r1, 4; add.s64 %rd5, %rd2, %rd5;
  @%p5 st.global.b32 [%rd5], %r20;
  ret;
"""
_BARRIER = "  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
_INBOX = "  .shared .align 8 .b8 phase[8];\n  .shared .align 16 .b8 box[128];\n"
_MEET = """
  mov.u32 %r10, phase; mov.u32 %r11, box; shl.b32 %r12, %r5, 2; add.s32 %r11, %r11, %r12;
  @%p2 mbarrier.init.shared.b64 [%r10], 1;
  @%p2 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  setp.lt.s32 %p3, %r4, {cluster};
  min.s32 %r13, %r4, {last};
  mapa.shared::cluster.u32 %r14, %r10, %r13; mapa.shared::cluster.u32 %r15, %r11, %r13;
"""
_EXCHANGE = """
  @%p2 mbarrier.arrive.expect_tx.shared.b64 %rd20, [%r10], {bytes};
  @%p3 st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r15], %r20, [%r14];
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p4, [%r10], %r21;
  @!%p4 bra AGAIN;
  xor.b32 %r21, %r21, 1; xor.b32 %r15, %r15, 64;
"""  # two boxes by turns: the next value may come while this one has not been looked at


def programs() -> Iterator[tuple[str, str, Workload, Build]]:
    """(group, name, its tensors, its build without a cubin): ``cluster-KIND-SIZE`` and ``…-WAITS``."""
    for kind in ("barrier", "exchange"):
        for cluster in CLUSTERS:
            for waits in WAITS:
                group = f"cluster-{kind}-{cluster}"
                yield group, f"{group}-{waits}", *_program(kind, cluster, waits)


def _program(kind: str, cluster: int, waits: int) -> tuple[Workload, Build]:
    before, wait, threads, declared = "", _BARRIER, 256, ""
    if kind == "exchange":
        before = _MEET.format(cluster=cluster, last=cluster - 1)
        wait, threads, declared = _EXCHANGE.format(bytes=4 * cluster), 32, _INBOX
    text = kernel(_LOOP.format(before=before, wait=wait, waits=waits), 2, declared)
    data = [np.zeros(16, np.uint8), np.zeros(32, np.int32)]
    made = build(text, data, grid=(BLOCKS, 1, 1), block=(threads, 1, 1), cluster=(cluster, 1, 1))
    inputs, outputs = (TensorSpec("x", DType.U8, (16,)),), (TensorSpec("o", DType.I32, (32,)),)
    return Workload("main", inputs, outputs), replace(made, inputs=1)


def slope_us(times_us: Mapping[int, float]) -> float:
    """What one more wait takes, from times by their number of waits."""
    return linear_regression(list(times_us), list(times_us.values())).slope
