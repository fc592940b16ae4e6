"""Low-rank adapters, one for each token: y = base + scale (x A[id]) B[id]."""

import torch


def reference(base, x, a, b, adapter):  # base: (tokens, n); x: (tokens, k); a: (adapters, k, r); b: (adapters, r, n)
    low = torch.einsum("tk,tkr->tr", x.float(), a[adapter].float())
    return (base.float() + 2.0 * torch.einsum("tr,trn->tn", low, b[adapter].float())).to(base.dtype)


def inputs():
    base, x = torch.randn(64, 1024).bfloat16(), torch.randn(64, 1024).bfloat16()
    a, b = torch.randn(8, 1024, 16).bfloat16() / 32, torch.randn(8, 16, 1024).bfloat16() / 4
    return [base, x, a, b, torch.randint(0, 8, (64,))]
