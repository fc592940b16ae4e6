"""Average pooling over the last two dimensions, and an epilogue of any elementwise expression."""

from __future__ import annotations

import math

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.emit.module import call, constraints, signature, text_of_tuple
from cutegen_lab.templates.emit.views import View
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.kernel_module import KernelModule
from cutegen_lab.templates.frontend.expr import Graph, Load
from cutegen_lab.templates.frontend.names import variable
from cutegen_lab.templates.kernels.limits import avg_pool2d as limits

NAME = "average pooling"
DOMAINS = {"threads": (64, 128, 256, 512, 1024), "outputs": (1, 2, 4, 8)}
KNOBS = {
    ("outputs", 1): "Twice the independent loads in flight per thread.",
    ("threads", 1): "Larger blocks: half as many to start.",
    ("threads", -1): "Smaller blocks: the last wave is finer.",
    ("outputs", -1): "Fewer registers per thread: more warps fit on an SM.",
}
_THREADS, _BLOCKS = 256, 1024
_SENTENCES = (
    "Each thread sums the windows of its results in fp32; adjacent threads read and write adjacent elements of a "
    "row. The epilogue is applied in fp32."
)


def matches(graph: Graph) -> bool:
    """Whether the graph has one pooled input, with the result's dimensions in order, and otherwise elementwise
    inputs."""
    pools = [pool for _, pool in graph.pools()]
    if len(pools) != 1 or graph.reduced or len(graph.outputs) != 1 or len(graph.space) < 2:
        return False
    others = any(graph.dots()) or any(graph.gathers()) or any(graph.iotas()) or any(graph.scans())
    parts = any(load.slices for _, load in graph.loads())
    in_order = pools[0].dims == tuple(range(len(graph.space))) == graph.outputs[0].dims
    return in_order and not others and not parts and not any(graph.full_reductions())


def default_config(graph: Graph, workload: Workload) -> Config:
    """256 threads; four or two results per thread if the blocks still fill an H200."""
    results = math.prod(workload.outputs[0].shape)
    outputs = next(n for n in (4, 2, 1) if n == 1 or results >= n * _THREADS * _BLOCKS)
    config = {"threads": _THREADS, "outputs": outputs}
    return config if not why_not(graph, config) else {**config, "outputs": 1}


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` exceeds; empty if it is feasible."""
    return str(limits.why_not(config, _elements(graph)))


def _elements(graph: Graph) -> int:
    """Number of elements in a window."""
    ((_, pool),) = graph.pools()
    return pool.window[0] * pool.window[1]


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _AvgPool(problem, graph, config).text()


class _AvgPool(KernelModule):
    """Writes the module of an average pooling. The input is (width, height, images); the result and the epilogue's
    inputs are (columns, rows, images). The sum and the epilogue are fp32."""

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        reserved = "images mean extras sizes window stride padding gX gOut"
        super().__init__(problem, graph, config, reserved, vector=graph.varies, extent="1.0", index="0.0")
        ((self.node, self.pool),) = graph.pools()

    def text(self) -> str:
        host = constraints(str(_elements(self.graph)))
        return self.bundled("avg_pool2d", NAME, _SENTENCES, DOMAINS, host, [self._epilogue(), self._launch()])

    def _epilogue(self) -> list[str]:
        env = {self.node: "mean"}
        env |= {i: self.views.of_load[i].name for i, node in enumerate(self.graph.nodes) if isinstance(node, Load)}
        root = self.graph.outputs[0].node
        lines = self.writer.assignments([root], env, {})
        text, _ = self.writer.expression(root, env)
        head = signature("epilogue", ["mean", *self.views.loaded, *self.sizes])
        return [*head, *(f"    {line}" for line in lines), f"    return {text}"]

    def _launch(self) -> list[str]:
        pool, x, (out,) = self.pool, self.inputs[self.pool.tensor], self.outputs
        rank = len(pool.dims)
        extras, sizes = (text_of_tuple(variable("g", name) for name in self.views.loaded), text_of_tuple(self.sizes))
        parameters = f"{pool.window}, {pool.stride}, {pool.padding}, {pool.count_padding}, {pool.divisor or 0}"
        height, width = (f"{x}.shape[{rank + at}]" for at in (-2, -1))
        return [
            *self.launch_head(),
            f"    images = {' * '.join(f'{x}.shape[{d}]' for d in range(rank - 2)) or '1'}",
            *self.size_lines(),
            *call(
                "gX = view", [f"{x}.iterator", f"({width}, {height}, images)", f"(1, {width}, {height} * {width})"], 4
            ),
            *(line for name in (*self.views.loaded, out) for line in self._view(self.views.by_name[name])),
            f"    extras, sizes = {extras}, {sizes}",
            *call("avg_pool2d", ["gX", variable("g", out), "extras, stream", parameters, "sizes, threads, outputs"], 4),
        ]

    def _view(self, view: View) -> list[str]:
        """Lines that view a tensor as (columns, rows, images) of results."""
        *outer, row, column = range(len(self.graph.space))
        images = self.space.outer_mode(view, outer, "images") if outer else ("1", "0")
        shape = f"{self.space.size(column)}, {self.space.size(row)}, {images[0]}"
        stride = f"{self.space.stride(view, column)}, {self.space.stride(view, row)}, {images[1]}"
        return self.view_lines(view, f"({shape})", f"({stride})")


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write, windows=True)
