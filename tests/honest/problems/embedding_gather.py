import torch.nn.functional as F


def reference(ids, table):  # ids: i64[100], table: f16[80,96]
    return F.embedding(ids.clamp(0, table.shape[0] - 1), table)
