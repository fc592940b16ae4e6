"""Attention with an online softmax: one warp a query, a lane a channel, keys one after another.

Odd: the scores are never stored anywhere, not even in shared memory. Legal: what is recomputed and rescaled is the same
sum (Milakov, Gimelshein: "Online normalizer calculation for softmax", 2018).
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

LOG2_E = 1.4426950408889634
SCALE = 0.17677669529663687


@cute.kernel
def attention_kernel(mQ: cute.Tensor, mK: cute.Tensor, mV: cute.Tensor, mO: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    query, head, _ = cute.arch.block_idx()
    q = mQ[head, query, lane]
    peak = cutlass.Float32(-float("inf"))
    total = cutlass.Float32(0.0)
    out = cutlass.Float32(0.0)
    for key in range(mK.shape[1]):
        score = cute.arch.warp_reduction(q * mK[head, key, lane], lambda a, b: a + b) * SCALE
        higher = cute.arch.fmax(peak, score, nan=True)
        keep = cute.math.exp2((peak - higher) * LOG2_E)
        keep = cutlass.Float32(0.0) if peak == cutlass.Float32(-float("inf")) else keep
        share = cute.math.exp2((score - higher) * LOG2_E)
        # A score of minus infinity before any other adds nothing yet.
        share = cutlass.Float32(0.0) if higher == cutlass.Float32(-float("inf")) else share
        total = total * keep + share
        out = out * keep + share * mV[head, key, lane]
        peak = higher
    mO[head, query, lane] = out / total


@cute.jit
def launch(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    attention_kernel(q, k, v, out).launch(grid=[q.shape[1], q.shape[0], 1], block=[32, 1, 1], stream=stream)
