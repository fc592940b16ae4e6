"""What the host functions of a module with several kernels, its steps, call: plain Python on workloads and configs."""

import dataclasses


def step_config(config, prefix):
    """The parameters of one step, under the names that its own functions use."""
    return {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}


def intermediate(workload, name, dtype, shape):
    """What one step leaves for another, described as the workload's tensors are."""
    like = workload.inputs[0]
    return dataclasses.replace(like, name=name, dtype=type(like.dtype)(dtype), shape=shape, strides=())


def row_major(shape):
    """Dense strides, of sizes of 1 too: CuTe's own layouts have 0 there, and families fold dimensions by them."""
    strides = [1]
    for size in shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return tuple(strides)
