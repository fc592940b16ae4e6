def reference(q, k):  # q: f16[6,20,32], k: f16[6,28,32]
    return q.float() @ k.float().transpose(1, 2)
