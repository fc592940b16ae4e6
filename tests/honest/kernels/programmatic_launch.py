"""Two kernels of which the second may start before the first has ended (programmatic dependent launch).

Odd: they overlap on the GPU, with each other and with what was launched before. Legal: each waits by
``griddepcontrol.wait`` before it touches what another kernel made.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


def workspace(workload, config):
    return [("peaks", "f32", (workload.inputs[0].shape[0],))]


@cute.kernel
def peak_kernel(mX: cute.Tensor, mP: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    peak = cutlass.Float32(-float("inf"))
    cute.arch.griddepcontrol_wait()
    for c in range(lane, mX.shape[1], 32):
        peak = cute.arch.fmax(peak, mX[row, c], nan=True)
    peak = cute.arch.warp_reduction(peak, lambda a, b: cute.arch.fmax(a, b, nan=True))
    if lane == 0:
        mP[row] = peak
    cute.arch.griddepcontrol_launch_dependents()


@cute.kernel
def subtract_kernel(mX: cute.Tensor, mP: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    cute.arch.griddepcontrol_wait()
    for c in range(tidx, mX.shape[1], 128):
        mY[row, c] = mX[row, c] - mP[row]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, peaks: cute.Tensor, stream: cuda.CUstream):
    peak_kernel(x, peaks).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream, use_pdl=True)
    subtract_kernel(x, peaks, y).launch(grid=[x.shape[0], 1, 1], block=[128, 1, 1], stream=stream, use_pdl=True)
