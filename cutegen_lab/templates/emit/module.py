"""Parts common to all generated modules: docstring, constraints, views of tensors over the iteration space."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.emit.views import View
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.frontend.formula import formula


@dataclass(frozen=True)
class Space:
    """Texts of the sizes of the iteration space: ``x.shape[0]`` for each dimension. ``tensors``: those of the
    kernel."""

    graph: Graph
    tensors: tuple[str, ...]

    def size(self, dim: int) -> str:
        return self.graph.extent_from[dim].text(self.tensors)

    def product(self, dims: Sequence[int]) -> str:
        sizes = [self.size(d) for d in dims]
        return " * ".join(f"({size})" if " " in size and len(sizes) > 1 else size for size in sizes) or "1"

    def outer_mode(self, view: View, outer: Sequence[int], count: str) -> tuple[str, str]:
        """(shape, stride) text of a layout mode that indexes all ``outer`` dimensions with one number.

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
        """Text of the distance between neighbours along a dimension of the space, in elements."""
        axis = view.dims[dim]
        if axis is None:
            return "0"
        finer = [d for d in range(dim + 1, len(view.dims)) if view.dims[d] == axis]
        return f"{view.tensor}.stride[{axis}]" + (f" * ({self.product(finer)})" if finer else "")


def docstring(problem: Problem, graph: Graph, family: str, sentences: str) -> str:
    """Docstring of a module as source lines: what it computes, and how."""
    names = [t.name for t in problem.workload.inputs]
    lines = [
        f"out{'' if len(graph.outputs) == 1 else i} = {formula(graph, o.node, names)}"
        for i, o in enumerate(graph.outputs)
    ]
    text = textwrap.fill(sentences, 110)
    body = "\n".join(textwrap.shorten(line, 116, placeholder=" …") for line in lines)
    return f'"""{problem.name}: {family}.\n\n{body}\n\n{text}\n"""'


def constraints(arguments: str, *before: str, rule: str = "why_not") -> list[str]:
    """The contract's function ``constraints``: it calls ``rule`` of the kernel's limits with the config and
    ``arguments``, which the lines ``before`` compute."""
    given = f"config, {arguments}" if arguments else "config"
    lines = [*before, f"return not {rule}({given})"]
    return ["def constraints(config, workload, device):", *(f"    {line}" for line in lines)]


def tunable(domains: Mapping[str, Sequence[Scalar]]) -> list[str]:
    entries = [f'    "{name}": {tuple(values)!r},' for name, values in domains.items()]
    return ["TUNABLE = {", *entries, "}", ""]


def constexprs(config: Config) -> list[str]:
    return [f"{name}: cutlass.Constexpr = {value!r}" for name, value in config.items()]


def signature(name: str, parameters: Sequence[str]) -> list[str]:
    """A ``def`` line, with one parameter on each line if it is too long."""
    line = f"def {name}({', '.join(parameters)}):"
    if len(line) <= 110:
        return [line]
    return [f"def {name}(", *(f"    {parameter}," for parameter in parameters), "):"]


def launch_head(tensors: Iterable[str], config: Config) -> list[str]:
    """The first lines of ``launch``: its decorator and parameters."""
    parameters = [*(f"{name}: cute.Tensor" for name in tensors), "stream: cuda.CUstream", *constexprs(config)]
    return ["@cute.jit", *signature("launch", parameters)]


def call(function: str, arguments: Sequence[str], indent: int) -> list[str]:
    """A call statement indented by ``indent`` spaces, with arguments on several lines if it is too long."""
    line = " " * indent + f"{function}({', '.join(arguments)})"
    if len(line) <= 116:
        return [line]
    rows = [""]
    for argument in arguments:
        fits = len(rows[-1]) + len(argument) + 2 <= 110 - indent
        rows = [*rows[:-1], f"{rows[-1]} {argument},"] if fits or not rows[-1] else [*rows, f"{argument},"]
    return [f"{' ' * indent}{function}(", *(f"{' ' * indent}    {row.strip()}" for row in rows), f"{' ' * indent})"]


def text_of_tuple(parts: Iterable[str]) -> str:
    """Text of a tuple: ``(a, b)``, ``(a,)`` or ``()``."""
    found = list(parts)
    return f"({', '.join(found)}{',' * (len(found) == 1)})"


def approximate(workload: Workload) -> tuple[bool, bool]:
    """(fast, coarse): 16-bit results allow hardware approximations; bf16 results also tanh.approx. Neither if results
    are rounded to integers, which would show the error."""
    kinds = {t.dtype for t in workload.outputs}
    return not kinds & {DType.F32, DType.I8, DType.U8, DType.I16, DType.I32}, kinds <= {DType.BF16}


def clean(lines: Sequence[str]) -> str:
    """Lines as one text with at most two consecutive blank lines."""
    out: list[str] = []
    for line in "\n".join(lines).splitlines():
        if line.strip() or (out[-2:] != ["", ""]):
            out.append(line.rstrip())
    return "\n".join(out).strip() + "\n"
