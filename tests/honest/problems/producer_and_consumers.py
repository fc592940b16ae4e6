def reference(x):  # x: f32[7,5000]
    return x.sum(-1), (x * x).sum(-1)
