def reference(a, b):  # a: f32[70,90], b: f32[90,50]
    return a @ b
