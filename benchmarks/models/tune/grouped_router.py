"""DeepSeek's router: the 2 best of 8 groups of experts by the sum of each group's top 2, then 4 experts of these."""

import torch


def reference(logits, bias):  # logits: (tokens, 64 experts); bias: (64,)
    scores = torch.sigmoid(logits.float())
    chosen = scores + bias
    groups = chosen.view(-1, 8, 8).topk(2, dim=-1).values.sum(-1)
    best = groups.topk(2, dim=-1).indices
    allowed = torch.zeros_like(groups).scatter(1, best, 1.0).bool()
    masked = chosen.masked_fill(~allowed.repeat_interleave(8, dim=1), float("-inf"))
    experts = masked.topk(4, dim=-1).indices
    weights = scores.gather(1, experts)
    return weights / weights.sum(-1, keepdim=True), experts


def inputs():
    return [torch.randn(4096, 64), torch.randn(64) / 10]
