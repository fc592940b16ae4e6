"""A compiled kernel whose blocks reduce across a cluster through distributed shared memory."""

from __future__ import annotations

import threading

import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.devices.emulator import EmulatorDevice
from tests.harness.checking import Compiler, built

SOURCE = """
import cutlass, cutlass.cute as cute
import cuda.bindings.driver as cuda
from cutlass import Int32, Int64

@cute.kernel
def cluster_sum_kernel(gX: cute.Tensor, gO: cute.Tensor, gCount: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    rank = cute.arch.block_idx_in_cluster()
    smem = cutlass.utils.SmemAllocator()
    parts = smem.allocate_tensor(Int32, cute.make_layout((4,)), byte_alignment=16)
    arrived = smem.allocate_array(Int64, num_elems=1)
    if tidx == 0:
        cute.arch.mbarrier_init(arrived, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive_relaxed()
    cute.arch.cluster_wait()
    total = cute.arch.warp_reduction(gX[bidx * 32 + tidx], lambda a, b: a + b)
    if tidx == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, 16)
    if tidx < 4:
        cute.arch.store_async_dsmem(parts.iterator + rank, total, arrived, tidx)
    cute.arch.mbarrier_wait(arrived, 0)
    gO[bidx * 32 + tidx] = parts[0] + parts[1] + parts[2] + parts[3]
    cute.arch.atomic_add(gCount.iterator, Int32(1))
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()

@cute.jit
def launch(x: cute.Tensor, o: cute.Tensor, count: cute.Tensor, stream: cuda.CUstream):
    zero_kernel(count).launch(grid=[1, 1, 1], block=[1, 1, 1], stream=stream)
    cluster_sum_kernel(x, o, count).launch(
        grid=[x.shape[0] // 32, 1, 1], block=[32, 1, 1], cluster=[4, 1, 1], stream=stream)

@cute.kernel
def zero_kernel(gCount: cute.Tensor):
    gCount[0] = Int32(0)
"""


def test_cluster_reduction_and_two_launches(compiler: Compiler) -> None:
    specs = tuple(TensorSpec.parse(t) for t in ("x: i32[1024]", "o: i32[1024]", "count: i32[1]"))
    build = built(compiler, SOURCE, [Workload("main", specs[:1], specs[1:])]).builds["main"]
    assert [launch.cluster for launch in build.plan.launches] == [(1, 1, 1), (4, 1, 1)]
    torch.manual_seed(0)
    x = torch.randint(-1000, 1000, (1024,), dtype=torch.int32)
    o, count = torch.zeros_like(x), torch.full((1,), -1, dtype=torch.int32)
    views = [memoryview(t.view(torch.uint8).numpy()) for t in (x, o, count)]
    execution = EmulatorDevice().execute(build, specs, views, threading.Event())
    assert execution.fault is None, execution.fault
    assert torch.equal(o, x.reshape(-1, 128).sum(1, dtype=torch.int32).repeat_interleave(128))
    assert int(count) == 1024
