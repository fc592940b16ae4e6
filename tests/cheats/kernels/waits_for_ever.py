"""Spins on a flag that nobody sets: a judge without a watchdog never answers again.

problem: x + 1 for x: f32[64]
class: spoils the next launch
defence: a budget of instructions on the emulator, a watchdog on a GPU
verdicts: hang, deadlock, uninitialised_read
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def spin_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    mY[tidx] = mX[tidx] + 1.0
    turns = cutlass.Int32(0)
    while mY[tidx] == mX[tidx] + 1.0:
        turns += 1
        mY[tidx] = mX[tidx] + 1.0


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    spin_kernel(x, y).launch(grid=[1, 1, 1], block=[x.shape[0], 1, 1], stream=stream)
