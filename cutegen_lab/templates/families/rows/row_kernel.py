"""Views of tensors for kernels over rows (the last dimensions): vectors of a row, or one value per row."""

from __future__ import annotations

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.views import View
from cutegen_lab.templates.families.kernel_module import KernelModule
from cutegen_lab.templates.frontend.expr import Graph


class RowKernel(KernelModule):
    """Base of the classes that write kernels over rows of ``n`` elements. Views have the shape (width, vectors of a
    row, rows), or (rows) for one value per row. ``outer``: the dimensions that are not reduced; their product is
    ``rows``."""

    def __init__(self, problem: Problem, graph: Graph, config: Config, reserved: str) -> None:
        super().__init__(problem, graph, config, reserved, vector=graph.varies, extent="n", index="columns")
        self.outer = [d for d in range(len(graph.space)) if d not in graph.reduced]
        self.skewed = False
        self.run = self.views.run(graph.reduced)
        self.broken = [d for d in graph.reduced if d not in self.run]  # reduced dimensions outside that single stride

    def along(self, view: View) -> bool:
        return any(view.dims[d] is not None for d in self.graph.reduced)

    def size_and_view_lines(self) -> list[str]:
        """Lines of ``launch``: ``rows``, ``n``, ``width``, sizes and each tensor's view."""
        widths = [
            "    # Shapes are Python ints here: the widest vector that divides the row needs no scalar tail.",
            f"    width = {self.views.width(self.space.product(self.run) if self.broken else 'n', self.run)}",
        ]
        if self.skewed:
            widths = [
                "    width = vec  # rows may begin and end inside a vector",
                "    reach = n // width if n % width == 0 else (n + width - 2) // width + 1  # vectors of a row",
                "    whole, tail = rows * n // width, rows * n % width  # vectors of a tensor, and values after them",
            ]
        return [
            f"    rows = {self.space.product(self.outer)}",
            f"    n = {self.space.product(self.graph.reduced)}",
            *widths,
            *self.size_lines(),
            *(line for view in self.views for line in self.view_lines(view, *self._layout(view))),
        ]

    def _layout(self, view: View) -> tuple[str, str]:
        """Texts of shape and stride: (width, vectors of a row, rows), or (rows) for one value per row, or (indices,
        rows) for the table of a gather."""
        shape, stride = self.space.outer_mode(view, self.outer, "rows")
        if view.picked is not None:
            size, step = (f"{view.tensor}.{what}[{view.picked}]" for what in ("shape", "stride"))
            return f"({size}, {shape})", f"({step}, {stride})"
        if not self.along(view):
            return shape, stride
        step = view.step(self.run) if view.dims[self.run[-1]] is not None else "0"
        across = "width" if step == "1" else f"width * {step}" if step != "0" else "0"
        reach = "n // width"
        if self.broken:
            inner = f"({self.space.product(self.run)}) // width"
            over, strides = self.space.outer_mode(view, self.broken, self.space.product(self.broken))
            reach, across = f"({inner}, {over})", f"({across}, {strides})"
        if self.skewed:
            reach, shape, stride = "reach", "whole + 1", "width"
        return f"(width, {reach}, {shape})", f"({step}, {across}, {stride})"
