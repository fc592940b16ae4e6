"""Merges two partial attention results by their log-sum-exps (SGLang's ``merge_attn_states``).

Odd: exponentials are taken relative to the larger log-sum-exp, not to the merged one as in the reference, and only one
thread a head writes the second output. Legal: the quotients are the same numbers.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

LOG2_E, LN_2 = 1.4426950408889634, 0.6931471805599453


@cute.kernel
def merge_kernel(
    mA: cute.Tensor, mLA: cute.Tensor, mB: cute.Tensor, mLB: cute.Tensor, mO: cute.Tensor, mL: cute.Tensor
):
    tidx, _, _ = cute.arch.thread_idx()
    head, token, _ = cute.arch.block_idx()
    width = mA.shape[2]
    lse_a, lse_b = mLA[token, head], mLB[token, head]
    peak = cute.arch.fmax(lse_a, lse_b, nan=True)
    e_a = cute.math.exp2((lse_a - peak) * LOG2_E)
    e_b = cute.math.exp2((lse_b - peak) * LOG2_E)
    lse = peak + cute.math.log2(e_a + e_b) * LN_2
    # Equal infinities: no difference of them means anything, but logaddexp is that infinity.
    lse = peak if lse_a == lse_b and (peak - peak != 0.0) else lse
    share_a = e_a / (e_a + e_b)
    share_b = e_b / (e_a + e_b)
    for d in range(tidx, width, 32):
        merged = mA[token, head, d].to(cutlass.Float32) * share_a + mB[token, head, d].to(cutlass.Float32) * share_b
        mO[token, head, d] = merged.to(mO.element_type)
    if tidx == 0:
        mL[token, head] = lse


@cute.jit
def launch(
    a: cute.Tensor,
    lse_a: cute.Tensor,
    b: cute.Tensor,
    lse_b: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor,
    stream: cuda.CUstream,
):
    merge_kernel(a, lse_a, b, lse_b, out, lse).launch(grid=[a.shape[1], a.shape[0], 1], block=[32, 1, 1], stream=stream)
