"""SGLang's merge_attn_states: two attention results over parts of the keys become one, weighted by their log-sum-exps.

Shapes: 512 tokens, and the heads (of 128 values) of Llama 2 with 7, 13 and 70 billion parameters.
"""

import torch


def reference(a, lse_a, b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    share_a, share_b = torch.exp(lse_a - lse).unsqueeze(-1), torch.exp(lse_b - lse).unsqueeze(-1)
    return (share_a * a + share_b * b).to(a.dtype), lse


def inputs():
    return [_inputs(heads) for heads in (32, 40, 64)]


def _inputs(heads):
    part, sums = (512, heads, 128), (512, heads)
    return {
        "a": torch.randn(part, dtype=torch.bfloat16), "lse_a": torch.randn(sums),
        "b": torch.randn(part, dtype=torch.bfloat16), "lse_b": torch.randn(sums),
    }  # fmt: skip
