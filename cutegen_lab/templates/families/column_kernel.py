"""Views of tensors for kernels that loop over dimensions before the last: rows of vectors of adjacent columns."""

from __future__ import annotations

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.views import View
from cutegen_lab.templates.families.kernel_module import KernelModule
from cutegen_lab.templates.frontend.expr import Const, Elementwise, Graph, Size


class ColumnKernel(KernelModule):
    """Base of the classes that write kernels over columns. Views have the shape (width, columns, n): ``width`` adjacent
    elements of the last dimension; ``n`` is the number of indices along the reduced dimensions. ``axis``: the first
    reduced dimension. Every value except constants is a vector."""

    def __init__(self, problem: Problem, graph: Graph, config: Config, reserved: str) -> None:
        constant: list[bool] = []
        for node in graph.nodes:
            constant.append(
                all(constant[a] for a in node.args) if isinstance(node, Elementwise) else isinstance(node, Const | Size)
            )
        super().__init__(
            problem, graph, config, reserved, vector=lambda i: not constant[i], extent="extent", index="position"
        )
        self.axis = graph.reduced[0]

    def wide(self, view: View) -> bool:
        return view.dims[-1] is not None

    def size_and_view_lines(self) -> list[str]:
        """Lines of ``launch``: ``n``, ``inner``, ``outer``, ``width``, ``columns``, sizes and each tensor's view."""
        rank = len(self.graph.space)
        rest = [d for d in range(rank - 1) if d not in self.graph.reduced]
        lines = [f"    n = {self.space.product(self.graph.reduced)}", f"    inner = {self.space.size(rank - 1)}"]
        lines += [f"    outer = {self.space.product(rest)}"]
        lines += [
            "    # Shapes are Python ints here: the widest vector that divides the last dimension needs no scalar tail."
        ]
        lines += [f"    width = {self.views.width('inner', [rank - 1])}", "    columns = inner // width * outer"]
        lines += self.size_lines()
        for view in self.views:
            shape, stride = self.space.outer_mode(view, rest, "outer") if rest else ("outer", "0")
            n, downward = self.space.outer_mode(view, self.graph.reduced, "n")
            if self.wide(view):
                step = view.step([rank - 1])
                across = "width" if step == "1" else f"width * {step}"
                layout = f"(width, (inner // width, {shape}), {n})", f"({step}, ({across}, {stride}), {downward})"
            else:
                layout = f"((inner // width, {shape}), {n})", f"((0, {stride}), {downward})"
            lines += self.view_lines(view, *layout)
        return lines
