def reference(x):  # x: f32[6,5000]
    return x.argmax(-1)
