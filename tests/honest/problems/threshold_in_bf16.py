def reference(x, y):  # x: bf16[128,2048], y: bf16[128,2048]
    return (x + y) * 0.1 > 0.05
