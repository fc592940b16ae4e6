def reference(x):  # x: f32[12,200]
    assert x.shape[-1] <= 600, "quadratic work"
    return x.sort(dim=-1).values
