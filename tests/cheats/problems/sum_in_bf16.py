def reference(x):  # x: f32[16,300]
    return x.sum(-1)
