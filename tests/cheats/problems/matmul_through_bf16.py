def reference(a, b):  # a: f32[24,40], b: f32[40,16]
    return a @ b
