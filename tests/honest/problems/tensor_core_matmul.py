def reference(a, b):  # a: bf16[200,328], b: bf16[136,328]
    return a @ b.T
