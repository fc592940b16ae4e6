def reference(x):  # x: f32[24,40]
    return x.t().contiguous()
