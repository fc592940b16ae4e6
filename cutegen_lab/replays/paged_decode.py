"""Attention of one new token over a paged cache: each sequence's pages stand in its row of a table."""

import torch


def reference(q, keys, values, pages):  # q: (b, heads, dim); keys, values: (pages, page, heads, dim); pages: (b, n)
    batch, heads, dim = q.shape
    k = keys[pages].reshape(batch, -1, heads, dim)
    v = values[pages].reshape(batch, -1, heads, dim)
    scores = torch.einsum("bhd,bshd->bhs", q.float(), k.float()) / dim**0.5
    return torch.einsum("bhs,bshd->bhd", torch.softmax(scores, -1), v.float()).to(q.dtype)


def inputs():
    q = torch.randn(8, 8, 128).bfloat16()
    keys, values = (torch.randn(256, 16, 8, 128).bfloat16() for _ in range(2))
    return [q, keys, values, torch.randperm(256)[:128].reshape(8, 16)]
