"""Base of all memory-bound families: names, sizes, tensor views and a writer of expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.bundle import bundle
from cutegen_lab.templates.emit.cute_text import Writer, number
from cutegen_lab.templates.emit.module import Space, approximate, call, docstring, launch_head, tunable
from cutegen_lab.templates.emit.views import View, Views
from cutegen_lab.templates.frontend.expr import NEUTRAL, FullReduce, Graph, Reduce
from cutegen_lab.templates.frontend.names import variable

COMBINE = {"add": "plus", "mul": "times", "max": "larger", "min": "smaller"}  # functions of two scalars, by operation
# Functions of two vectors, by operation.
COMBINE_VECTORS = {"add": "plus", "mul": "times", "max": "larger_each", "min": "smaller_each"}
WISHES = {"add": "total", "mul": "product", "max": "peak", "min": "least"}


def of_numbers(op: str) -> str:
    """Text of a reduction's combine function (scalars) and its neutral element."""
    return f"({COMBINE[op]}, {number(NEUTRAL[op])})"


def of_vectors(op: str) -> str:
    """Text of a reduction's combine functions (vectors, scalars) and its neutral element."""
    return f"({COMBINE_VECTORS[op]}, {COMBINE[op]}, {number(NEUTRAL[op])})"


class KernelModule:
    """Base of the classes that write the module of one memory-bound kernel. A subclass's ``text`` returns the source.

    Tensors have any dtype that the reader accepts; kernels compute in fp32 (:class:`Graph`). Sizes and strides count
    elements. ``reserved``: the kernel's own names, separated by spaces. ``vector(i)``: whether node i is a vector of a
    thread's elements, not a scalar. ``extent``, ``index``: texts of the reduced length and of the indices along the
    reduced dimensions.
    """

    def __init__(
        self, problem: Problem, graph: Graph, config: Config, reserved: str, *, vector: Callable[[int], bool],
        extent: str, index: str,
    ) -> None:  # fmt: skip
        self.problem, self.graph, self.config = problem, graph, config
        self.fast, coarse = approximate(problem.workload)
        self.inputs = tuple(t.name for t in problem.workload.inputs)
        self.outputs = tuple(t.name for t in problem.workload.outputs)
        self.space = Space(graph, (*self.inputs, *self.outputs))
        self.views = Views(graph, self.inputs, self.outputs)
        self.sizes = {size.name: size.text(self.inputs) for size in graph.sizes()}
        self.writer = Writer(graph, vector, fast=self.fast, coarse=coarse, extent=extent, index=index)
        self.writer.reserve([*reserved.split(), *COMBINE.values(), *self.inputs, *self.views.by_name])

    def bundled(
        self, kernel: str, family: str, sentences: str, domains: Mapping[str, Sequence[Scalar]], host: Sequence[str],
        functions: Sequence[Sequence[str]],
    ) -> str:  # fmt: skip
        """The module's source. ``host``: ``constraints`` and ``workspace``. ``functions``: the generated functions; all
        others are in the kernel file. Raises KeyError if a name is defined in neither."""
        generated = [line for function in functions for line in ("", "", *function)]
        written = docstring(self.problem, self.graph, family, sentences)
        return bundle(kernel, written, [*tunable(domains), "", *host], generated)

    def reduction_name(self, index: int) -> str:
        """A new variable name for a reduction."""
        node = self.graph.nodes[index]
        assert isinstance(node, Reduce | FullReduce)
        return self.writer.name(self.writer.suggested.get(index, WISHES[node.op]))

    def launch_head(self, *workspace: str) -> list[str]:
        return launch_head((*self.inputs, *self.outputs, *workspace), self.config)

    def view_lines(self, view: View, shape: str, stride: str) -> list[str]:
        """Lines of ``launch``: ``gX = view(…)``, tensor ``x`` with this shape and stride."""
        return call(f"{variable('g', view.name)} = view", [view.pointer, shape, stride], 4)

    def size_lines(self) -> list[str]:
        """Lines of ``launch``: constants that follow from input shapes."""
        return [f"    {name} = {text}" for name, text in self.sizes.items()]

    def _single(self, view: View) -> bool:
        return all(dim is None for dim in view.dims)

    @property
    def single_numbers(self) -> dict[int, str]:
        """Names of one-element inputs, by the nodes that load them."""
        return {index: view.name for index, view in self.views.of_load.items() if self._single(view)}

    @property
    def single_tensors(self) -> list[str]:
        """Variables of one-element inputs in ``launch``."""
        return [variable("g", n) for n in self.views.loaded if self._single(self.views.by_name[n])]
