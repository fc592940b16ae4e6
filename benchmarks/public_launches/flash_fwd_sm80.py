"""flash-attention's Ampere forward: cp.async, mma.sync."""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass.base_dsl.arch import Arch
from flash_attn.cute.flash_fwd import FlashAttentionForwardSm80


@cute.jit
def launch(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    groups = q.shape[2] // k.shape[2]
    fa = FlashAttentionForwardSm80(q.element_type, q.shape[3], v.shape[3], groups, pack_gqa=False, tile_m=64, tile_n=64)
    fa.arch = Arch.sm_80  # its own path, whatever it is compiled for
    fa(q, k, v, out, None, cutlass.Float32(1 / math.sqrt(q.shape[3])), stream=stream)


def constraints(config, workload, device) -> bool:
    return all(t.shape[3] % 8 == 0 for t in workload.inputs)
