import torch.nn.functional as F


def reference(logits, labels):  # logits: f32[24,500], labels: i64[24]
    return F.cross_entropy(logits, labels.clamp(0, logits.shape[-1] - 1), reduction="none")
