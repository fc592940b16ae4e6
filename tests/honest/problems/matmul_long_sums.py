def reference(a, b):  # a: f32[24,8192], b: f32[8192,16]
    return a @ b
