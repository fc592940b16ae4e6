"""Host functions of a module with several kernels (its steps): plain Python on workloads and configs."""

import dataclasses


def step_config(config, prefix):
    """The parameters of one step, without ``prefix``: under the names that the step's own functions use."""
    return {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}


def intermediate(workload, name, dtype, shape):
    """A tensor that one step writes and another reads, described like the workload's tensors."""
    like = workload.inputs[0]
    return dataclasses.replace(like, name=name, dtype=type(like.dtype)(dtype), shape=shape, strides=())


def row_major(shape):
    """Dense row-major strides, for dimensions of size 1 too, to which CuTe would give 0."""
    strides = [1]
    for size in shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return tuple(strides)
