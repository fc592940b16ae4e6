def reference(x, y, z):  # x: bf16[64,256], y: bf16[64,256], z: bf16[64,256]
    return (x + y) * z
