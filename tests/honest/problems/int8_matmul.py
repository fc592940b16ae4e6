def reference(a, b):  # a: i8[30,64], b: i8[20,64]
    return a.int() @ b.int().transpose(0, 1)
