"""Attention over padded sequences: keys at and beyond a sequence's length are not seen."""

import torch
import torch.nn.functional as F


def reference(q, k, v, lengths):  # q, k, v: (batch, heads, sequence, head_dim); lengths: (batch,)
    seen = torch.arange(k.shape[2]) < lengths[:, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None, None, :])


def inputs():
    q, k, v = (torch.randn(2, 8, 256, 64).bfloat16() for _ in range(3))
    return [q, k, v, torch.tensor([180, 256])]
