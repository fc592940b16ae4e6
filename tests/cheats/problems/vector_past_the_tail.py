def reference(x):  # x: f32[1001]
    return x + 1
