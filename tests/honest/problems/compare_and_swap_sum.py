deterministic = False  # the order of additions is a race


def reference(x):  # x: f32[300,20]
    return (x * 2).sum(0)
