import torch


def reference(x, angle):  # x: bf16[40,6,64], angle: f32[40,32]
    cos, sin = angle.cos().unsqueeze(1), angle.sin().unsqueeze(1)
    half = angle.shape[-1]
    a, b = x[..., :half].float(), x[..., half:].float()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)
