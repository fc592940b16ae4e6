import torch


def reference(x):  # x: bf16[300,2048]
    wide = x.float()
    scale = wide.abs().amax(-1, keepdim=True).clamp(min=1e-10) / 448
    return (wide / scale).to(torch.float8_e4m3fn), scale
