import torch


def reference(x):  # x: f32[25,300]
    return torch.where(x.isnan(), torch.inf, x).topk(min(4, x.shape[-1]), dim=-1).values
