"""Checks a step's ``align`` against the shapes of its tensors, and derives the vector width."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.cutespec.form import Option
from cutegen_lab.templates.template import Single, Template

LEGAL = (1, 2, 4, 8, 16)  # legal alignments in bytes; the contract aligns every tensor to 16


def vector_width(option: Option, template: Template) -> int:
    """Number of elements of the narrowest dtype in one access of as many bytes as ``option`` says. Raises SpecError if
    rows of a tensor do not start at multiples of that; the message names the tensor."""
    (size,) = option.values
    if not isinstance(template, Single):
        raise option.place.error(
            "align applies to one kernel, and the spec takes several", "Name each kernel by a `step`."
        )
    if not isinstance(size, int) or size not in LEGAL:
        nearest = max((v for v in LEGAL if isinstance(size, int) and v <= size), default=LEGAL[0])
        words = ", ".join(map(str, LEGAL))
        raise option.place.error(
            f"align is {size}; it may be {words} bytes, since tensors begin at multiples of 16",
            f"The nearest is {nearest}.",
        )
    tensors = [tensor for workload in template.problem.workloads for tensor in workload.tensors]
    for tensor in tensors:
        for pitch in _pitches(tensor):
            if pitch % size:
                raise option.place.error(
                    f"align is {size}, but rows of {tensor} begin every {pitch} bytes",
                    f"The nearest is {math.gcd(pitch, size)}.",
                )
    return max(1, size // min(tensor.dtype.itemsize for tensor in tensors))


def _pitches(tensor: TensorSpec) -> Iterator[int]:
    """Bytes between consecutive rows, for every dimension but the dense one."""
    for size, step in zip(tensor.shape, tensor.stride, strict=True):
        if size > 1 and step > 1:
            yield step * tensor.dtype.itemsize
