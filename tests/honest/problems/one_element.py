def reference(x):  # x: f32[1]
    return x * 2 + 1
