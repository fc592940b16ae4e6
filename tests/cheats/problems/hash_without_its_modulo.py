import torch.nn.functional as F


def reference(ids, table):  # ids: i64[300], table: f32[50,8]
    return F.embedding(ids % 50, table)
