def reference(a, b):  # a: bf16[328,200], b: bf16[200,264]
    assert a.shape[1] % 8 == 0 and b.shape[1] % 8 == 0, "TMA takes rows of a multiple of 16 bytes"
    return a @ b
