def reference(a, b):  # a: bf16[136,200], b: bf16[72,200]
    return a @ b.T
