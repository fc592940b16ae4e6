import torch.nn.functional as F


def reference(x):  # x: f32[16,1000]
    return F.layer_norm(x, x.shape[-1:])
