"""flash-attention's Hopper forward of packed sequences, causal: ragged tensor maps, cumulative lengths."""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from flash_attn.cute.flash_fwd_sm90 import FlashAttentionForwardSm90


def dynamic(t: cute.Tensor) -> cute.Tensor:
    """With sizes and strides that are not known while compiling, as the kernel's own host code gives them: of ragged
    tensors the DSL multiplies all sizes, and a static product would not fit into 64 bits."""
    shape = tuple(cutlass.Int32(size) for size in t.shape[:-1])
    stride = tuple(cutlass.Int64(step) for step in t.stride[:-1])
    return cute.make_tensor(t.iterator, cute.make_layout((*shape, t.shape[-1]), stride=(*stride, 1)))


@cute.jit
def launch(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, cu: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    groups = q.shape[1] // k.shape[1]
    fa = FlashAttentionForwardSm90(
        q.element_type, q.shape[2], v.shape[2], groups, is_causal=True, pack_gqa=False, tile_m=128, tile_n=128,
        num_stages=2, num_threads=384,
    )  # fmt: skip
    scale = cutlass.Float32(1 / math.sqrt(q.shape[2]))
    fa(dynamic(q), dynamic(k), dynamic(v), dynamic(out), None, scale, cu, cu, stream=stream)


def constraints(config, workload, device) -> bool:
    return all(t.shape[2] % 8 == 0 for t in workload.inputs[:3])
