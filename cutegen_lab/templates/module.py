"""The parts every generated module shares: header, helpers, views of the tensors over the iteration space."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.expr import Graph
from cutegen_lab.templates.formula import formula
from cutegen_lab.templates.views import View

CUTE_TYPE = {
    DType.F32: "Float32", DType.F16: "cutlass.Float16", DType.BF16: "cutlass.BFloat16", DType.I64: "cutlass.Int64",
    DType.I32: "cutlass.Int32", DType.I16: "cutlass.Int16", DType.I8: "cutlass.Int8", DType.U8: "cutlass.Uint8",
    DType.BOOL: "cutlass.Boolean",
}  # fmt: skip

HELPERS: Mapping[str, str] = {
    "sigmoid": """
        def sigmoid(x):
            return 1.0 / (1.0 + cute.math.exp(-x))
        """,
    "sigmoid_fast": '''
        def sigmoid(x):
            """By the hardware's exponential. One tanh is cheaper and loses the tail: at -9 an H200 is 1% off by it."""
            return cute.math.rcp(1.0 + cute.math.exp(-x, fastmath=True), approx=True, ftz=True)
        ''',
    "erf_fast": '''
        def erf(x):
            """6e-7 off at most, in fp32 (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26)."""
            t = cute.math.rcp(1.0 + 0.3275911 * cute.math.abs(x), approx=True, ftz=True)
            series = t * (1.421413741 + t * (t * 1.061405429 - 1.453152027)) - 0.284496736
            rest = t * (t * series + 0.254829592) * cute.math.exp(-(x * x), fastmath=True)
            return cute.where(x < 0.0, rest - 1.0, 1.0 - rest)
        ''',
    "constant_where": """
        def choose(condition, yes, no):
            return cute.where(
                condition, cute.full_like(condition, yes, Float32), cute.full_like(condition, no, Float32)
            )
        """,
}


@dataclass(frozen=True)
class Space:
    """Text for the sizes of the iteration space: ``x.shape[0]`` for each dimension. ``tensors`` are the kernel's."""

    graph: Graph
    tensors: tuple[str, ...]

    def size(self, dim: int) -> str:
        return self.graph.extent_from[dim].text(self.tensors)

    def product(self, dims: Sequence[int]) -> str:
        sizes = [self.size(d) for d in dims]
        return " * ".join(f"({size})" if " " in size and len(sizes) > 1 else size for size in sizes) or "1"

    def outer_mode(self, view: View, outer: Sequence[int], count: str) -> tuple[str, str]:
        """(shape, stride) text of a layout mode that takes one number for all ``outer`` dimensions.

        CuTe counts a hierarchical mode with its leftmost dimension fastest, so the innermost comes first.
        """
        if all(view.dims[d] is None for d in outer):
            return count, "0"
        if view.contiguous(outer):
            return count, self.stride(view, outer[-1])
        sizes = ", ".join(self.size(d) for d in reversed(outer))
        strides = ", ".join(self.stride(view, d) for d in reversed(outer))
        return f"({sizes})", f"({strides})"

    def stride(self, view: View, dim: int) -> str:
        """Text of the distance between neighbours along a dimension of the space."""
        axis = view.dims[dim]
        if axis is None:
            return "0"
        finer = [d for d in range(dim + 1, len(view.dims)) if view.dims[d] == axis]
        return f"{view.tensor}.stride[{axis}]" + (f" * ({self.product(finer)})" if finer else "")


def header(problem: Problem, graph: Graph, family: str, sentences: str) -> list[str]:
    names = [t.name for t in problem.workload.inputs]
    lines = [
        f"out{'' if len(graph.outputs) == 1 else i} = {formula(graph, o.node, names)}"
        for i, o in enumerate(graph.outputs)
    ]
    text = textwrap.fill(sentences, 110)
    body = "\n".join(textwrap.shorten(line, 116, placeholder=" …") for line in lines)
    return [
        f'"""{problem.name}: {family}.\n\n{body}\n\n{text}\n"""', "", "import math", "",
        "import cuda.bindings.driver as cuda", "import cutlass", "import cutlass.cute as cute",
        "from cutlass import Float32", "",
    ]  # fmt: skip


def helpers(names: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for name in sorted(names):
        lines += ["", textwrap.dedent(HELPERS[name]).strip(), ""]
    return lines


def tunable(domains: Mapping[str, Sequence[Scalar]]) -> list[str]:
    entries = [f'    "{name}": {tuple(values)!r},' for name, values in domains.items()]
    return ["TUNABLE = {", *entries, "}", ""]


def constexprs(config: Config) -> list[str]:
    return [f"{name}: cutlass.Constexpr = {value!r}" for name, value in config.items()]


def signature(name: str, parameters: Sequence[str]) -> list[str]:
    """A ``def`` line, or several with one parameter each where it would be long."""
    line = f"def {name}({', '.join(parameters)}):"
    if len(line) <= 110:
        return [line]
    return [f"def {name}(", *(f"    {parameter}," for parameter in parameters), "):"]


def approximate(workload: Workload) -> tuple[bool, bool]:
    """(fast, coarse): 16-bit results allow the hardware's approximations; bf16 results even tanh.approx. Integers that
    are rounded to would show them."""
    kinds = {t.dtype for t in workload.outputs}
    return not kinds & {DType.F32, DType.I8, DType.U8, DType.I16, DType.I32}, kinds <= {DType.BF16}


def variable(prefix: str, name: str) -> str:
    """CUTLASS's habit: ``m`` whole tensor, ``g`` this block's, ``r`` registers: ``rX``."""
    return prefix + name[:1].upper() + name[1:]


def clean(lines: Sequence[str]) -> str:
    """One text, at most two blank lines in a row."""
    out: list[str] = []
    for line in "\n".join(lines).splitlines():
        if line.strip() or (out[-2:] != ["", ""]):
            out.append(line.rstrip())
    return "\n".join(out).strip() + "\n"
