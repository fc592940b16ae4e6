def reference(x):  # x: f32[64]
    return x + 1
