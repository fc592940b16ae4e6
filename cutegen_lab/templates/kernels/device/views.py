"""How a tensor's memory is seen by a kernel."""

import cutlass.cute as cute


def view(pointer, shape, stride):
    """The memory at ``pointer`` as a tensor of that shape, its strides in elements."""
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))
