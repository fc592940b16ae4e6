def reference(x):  # x: i16[9000]
    return x.cumsum(0)
