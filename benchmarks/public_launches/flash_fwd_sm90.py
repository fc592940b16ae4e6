"""flash-attention's Hopper forward: TMA, wgmma, two consumer warpgroups."""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from flash_attn.cute.flash_fwd_sm90 import FlashAttentionForwardSm90


@cute.jit
def launch(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    groups = q.shape[2] // k.shape[2]
    fa = FlashAttentionForwardSm90(
        q.element_type, q.shape[3], v.shape[3], groups, pack_gqa=False, tile_m=128, tile_n=128, num_stages=2,
        num_threads=384,
    )  # fmt: skip
    fa(q, k, v, out, None, cutlass.Float32(1 / math.sqrt(q.shape[3])), stream=stream)


def constraints(config, workload, device) -> bool:
    return all(t.shape[3] % 8 == 0 for t in workload.inputs)
