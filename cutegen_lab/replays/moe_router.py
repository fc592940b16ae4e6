"""Router of a mixture of experts: the two most probable experts, their weights renormalised."""

import torch


def reference(x):  # x: (tokens, experts), logits
    weights, experts = torch.topk(torch.softmax(x.float(), -1), 2, dim=-1)
    return weights / weights.sum(-1, keepdim=True), experts


def inputs():
    return [torch.randn(4096, 64)]
