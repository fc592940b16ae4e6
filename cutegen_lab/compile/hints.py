"""Explanations of the DSL's misleading messages, and of names that models invent (nvidia-cutlass-dsl 4.8.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Hint:
    """An explanation of one misleading message."""

    pattern: str
    """Regular expression that recognises the message."""
    suggestion: str
    """What to do."""
    exception: str = ""
    """Name of the exception's type; empty for any."""
    replaces_message: bool = False
    """Whether the compiler's own note is misleading and is only quoted."""


HINTS = (
    Hint(r"Unsupported DSL type: vector",
         "Not a compiler bug: a scalar max/min or a Python ternary has a vector operand. Use cute.where(v > 0.0, v, "
         "0.0), or v.reduce(cute.ReductionOp.MAX, init, reduction_profile=0) to reduce it.", replaces_message=True),
    Hint(r"ptr alignment \(\d+ bits\)|alignment.*expected.*128",
         "A pointer offset lost its alignment, or the vector is along the wrong mode. Use cute.local_tile, or "
         "(x.iterator + offset).align(16), and vectorise the contiguous mode.", replaces_message=True),
    Hint(r"copy_bits to be \d+ but got", "The predicate must have one entry per vector, not one per element."),
    Hint(r"PHASE_DYNAMIC_INDEX|list index",
         "A Python list or Python's math was used with a value known only on the GPU. Loop with "
         "cutlass.range_constexpr, and use cute.math on values."),
    Hint(r"NameError in `launch`",
         "The name is used in a kernel or helper called from launch. A name first bound inside an if or for does not "
         "exist after it: give it a value before."),
    Hint(r"expected some sort of expr, but got",
         "The error is not at this line: a conditional expression is in the index of an assignment (x[a if c else b] = "
         "v). Choose the index on a line before.", "TypeError"),
    Hint(r"weakly congruent", "Wrong number of indices for the tensor's modes, or cute.group_modes is missing."),
    Hint(r"Operand 1 .* must be a Value", "An integer tiler on a 2-D tensor: pass a tuple with one entry per mode."),
    Hint(r"'tuple' object is not callable", "Pass cute.make_layout(shape), not the bare tuple.", "TypeError"),
    Hint(r"MemRange only support dsl scalar type",
         "A TMA tensor's element_type is a coordinate: pass the dtype to the kernel as a Constexpr."),
    Hint(r"Expected Coord, whose leaves are integers or None",
         "Index with None, integers and tuples (x[row, None]); slices and ... are not supported."),
    Hint(r"'_Tensor' object has no attribute '(to|clone|contiguous)'",
         "A tensor in registers has no such method (quack adds it to the DSL's class, which no candidate may): "
         "out = cute.make_rmem_tensor_like(x, dtype); out.store(x.load().to(dtype))."),
    Hint(r"uses .*, which candidates may not use",
         "Host code that bundling left out is called: pass its result as an argument, or write its value."),
    Hint(r"UNSUP_NO_SOURCE", "The DSL needs the source of every jit function: no exec() or lambdas as kernels."),
    Hint(r"recursion depth", "Unrolled code nests too deep; use a dynamic loop (range) or a smaller tile.",
         "RecursionError"),
)  # fmt: skip

ALIASES = {
    "maximum": "Use cute.where(a > b, a, b) on vectors, cute.arch.fmax on scalars.",
    "minimum": "Use cute.where(a < b, a, b) on vectors, cute.arch.fmin on scalars.",
    "rsqrt": "Use cute.math.rsqrt(x, fastmath=True).",
    "sqrt": "Use cute.math.sqrt(x).",
    "exp": "Use cute.math.exp(x, fastmath=True).",
    "exp2": "Use cute.math.exp2(x, fastmath=True).",
    "log": "Use cute.math.log(x).",
    "tanh": "Use cute.math.tanh(x, fastmath=True).",
    "erf": "Use cute.math.erf(x).",
    "sigmoid": "Use 1.0 / (1.0 + cute.math.exp(-x, fastmath=True)).",
    "astype": "Use v.to(cutlass.Float32).",
    "cast": "Use v.to(cutlass.Float32).",
    "sum": "Use v.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0).",
    "max": "Use v.reduce(cute.ReductionOp.MAX, -float('inf'), reduction_profile=0).",
    "min": "Use v.reduce(cute.ReductionOp.MIN, float('inf'), reduction_profile=0).",
    "mean": "Reduce with ADD and divide by the count.",
    "make_fragment": "Use cute.make_rmem_tensor(shape, dtype).",
    "warpgroup_reg_alloc": "Use cute.arch.setmaxregister_increase(n).",
    "warpgroup_reg_dealloc": "Use cute.arch.setmaxregister_decrease(n).",
    "syncthreads": "Use cute.arch.sync_threads().",
    "shfl_xor": "Use cute.arch.shuffle_sync_bfly(v, offset=n).",
}


def hint_for(text: str, exception: str) -> Hint | None:
    """The first hint that recognises the message; None if there is none."""
    for hint in HINTS:
        if (not hint.exception or hint.exception == exception) and re.search(hint.pattern, text):
            return hint
    return None
