"""Full reductions to single numbers: losses, means. Two kernels, so that all SMs read.

Each block of the first kernel reduces some of the elements and stores one partial result in a workspace. The second
kernel, one block, reduces these and computes the results. The order of every sum is fixed, so results are the same at
every call.
"""

from __future__ import annotations

import math

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.emit.module import call, constraints, signature, text_of_tuple
from cutegen_lab.templates.emit.views import View, Views
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.finish import finishing_function, finishing_launch
from cutegen_lab.templates.families.kernel_module import KernelModule, of_vectors
from cutegen_lab.templates.frontend.expr import FullReduce, Gather, Graph, Iota, Reduce, ReducedIota
from cutegen_lab.templates.frontend.names import variable
from cutegen_lab.templates.kernels.limits import total as limits

NAME = "total"
DOMAINS = {
    "vec": (1, 2, 4, 8, 16),
    "threads": (64, 128, 256, 512, 1024),
    "loads": (1, 2, 4, 8),
    "blocks": (66, 132, 264, 528, 1056, 2112),
}
KNOBS = {
    ("loads", 1): "Twice the independent loads in flight per thread.",
    ("blocks", 1): "Twice the blocks: more loads in flight on a multiprocessor that has room for them.",
    ("blocks", -1): "Half the blocks: each reads more before it reduces, and the second kernel reads less.",
    ("threads", 1): "Larger blocks: as many loads in flight with fewer partial results.",
    ("vec", 1): "Half as many memory instructions for the same bytes.",
    ("threads", -1): "Smaller blocks: barriers wait for fewer warps.",
    ("loads", -1): "Fewer registers per thread: more warps fit on an SM.",
    ("vec", -1): "Narrower accesses: fewer registers per thread.",
}
MIN_ELEMENTS = 1 << 15  # with fewer elements, one block is faster than a second kernel


def matches(graph: Graph) -> bool:
    """Whether one pass reduces all dimensions, with MIN_ELEMENTS elements or more, and each input is contiguous or a
    single number."""
    if len(graph.reduced) != len(graph.space) or any(graph.dots()) or math.prod(graph.space) < MIN_ELEMENTS:
        return False
    if max(graph.depths()) != 1 or any(
        isinstance(node, ReducedIota | Gather | Iota | FullReduce) for node in graph.nodes
    ):
        return False
    if any(graph.varies(output.node) for output in graph.outputs):
        return False
    views = [view for view in Views.nameless(graph) if any(dim is not None for dim in view.dims)]
    return all(view.contiguous(graph.reduced) for view in views)


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors, four in flight per thread, two blocks for each SM of an H200."""
    itemsize = min(t.dtype.itemsize for t in workload.inputs)
    vec = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    return {"vec": vec, "threads": 512, "loads": 4, "blocks": 264}


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` exceeds; empty if it is feasible."""
    return str(limits.why_not(config))


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _Totals(problem, graph, config).text()


class _Totals(KernelModule):
    """Writes the module of full reductions of ``n`` elements. Workspace: ``partials`` f32 (reductions, blocks). Views
    have the shape (width, vectors, 1), or (1) for a single number."""

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        super().__init__(problem, graph, config, "n vectors width blocks", vector=graph.varies, extent="n", index="0")
        self.loaded = [name for name in self.views.loaded if self._along(self.views.by_name[name])]
        self.reductions = {i: node for i, node in enumerate(graph.nodes) if isinstance(node, Reduce)}
        self.names = {i: self.reduction_name(i) for i in self.reductions}

    def text(self) -> str:
        functions = [self._reduced(), finishing_function(self, self.outputs, self.names, "blocks")]
        sentences = (
            "The blocks of the first kernel share the elements and store one partial result each; the second kernel "
            "reduces these. The order of every sum is fixed, so results are the same at every call."
        )
        host = [
            *constraints(""), "", "",
            "def workspace(workload, config):", '    """Workspace: per reduction, a partial result per block."""',
            f'    return [("partials", "f32", ({len(self.reductions)}, config["blocks"]))]',
        ]  # fmt: skip
        return self.bundled("total", NAME, sentences, DOMAINS, host, [*functions, self._launch()])

    def _along(self, view: View) -> bool:
        return view.dims[-1] is not None

    def _reduced(self) -> list[str]:
        """``reduced``: computes the operands of the reductions from vectors of the inputs."""
        env = {index: view.name for index, view in self.views.of_load.items()}
        roots = [node.args[0] for node in self.reductions.values()]
        lines = self.writer.assignments(roots, env, {})
        lines.append(f"return {text_of_tuple(self.writer.expression(root, env)[0] for root in roots)}")
        numbers = dict.fromkeys(self.single_numbers.values())
        head = signature("reduced", [*self.loaded, "n", *numbers, *self.sizes])
        return [*head, *(f"    {line}" for line in lines)]

    def _launch(self) -> list[str]:
        lines = self.launch_head("partials")
        lines += [
            f"    n = {self.space.product(self.graph.reduced)}",
            "    # Shapes are Python ints here: the widest vector that divides ``n`` needs no scalar tail.",
            f"    width = {self.views.width('n', self.graph.reduced)}",
            "    vectors = n // width",
            "    working = min(blocks, (vectors + threads * loads - 1) // (threads * loads))",
        ]
        lines += self.size_lines()
        for view in self.views:
            if self._along(view):
                step = view.step(self.graph.reduced)
                across = "width" if step == "1" else f"width * {step}"
                lines += self.view_lines(view, "(width, vectors, 1)", f"({step}, {across}, 0)")
            else:
                lines += self.view_lines(view, "1", "0")
        ops = [of_vectors(node.op) for node in self.reductions.values()]
        given = [
            text_of_tuple(variable("g", name) for name in self.loaded), text_of_tuple(self.single_tensors), "partials",
            "reduced", text_of_tuple(ops), text_of_tuple(self.sizes), "n", "threads", "loads", "working",
        ]  # fmt: skip
        return [
            *lines,
            *call("partial_totals", [*given, "stream"], 4),
            *finishing_launch(self, self.outputs, self.reductions, "partials", ["n", "threads", "working"]),
        ]


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write)
