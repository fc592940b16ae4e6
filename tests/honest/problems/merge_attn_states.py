import torch


def reference(a, lse_a, b, lse_b):  # a: bf16[30,4,64], lse_a: f32[30,4], b: bf16[30,4,64], lse_b: f32[30,4]
    lse = torch.logaddexp(lse_a, lse_b)
    share_a, share_b = torch.exp(lse_a - lse).unsqueeze(-1), torch.exp(lse_b - lse).unsqueeze(-1)
    return (a.float() * share_a + b.float() * share_b).to(a.dtype), lse
