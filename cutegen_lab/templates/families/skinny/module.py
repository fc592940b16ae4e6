"""Writes the module of a product with few rows."""

from __future__ import annotations

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.bundle import bundle
from cutegen_lab.templates.emit.module import Space, constraints, docstring, tunable
from cutegen_lab.templates.families.gemm.product_module import ProductModule
from cutegen_lab.templates.families.skinny.config import DOMAINS, NAME
from cutegen_lab.templates.frontend.expr import Graph

_SENTENCES = (
    "The large operand is read once, in vectors, and multiplied by the few rows of the other, with FMAs or on the "
    "tensor cores; sums are fp32. The threads of a block, and the blocks of a cluster, share k; the order of every "
    "sum is fixed. The epilogue is applied in fp32."
)


class SkinnyModule(ProductModule):
    """Writes the module of a product (batches, m, n) with a small m or n, of bf16, f16 or f32 operands, with sums and
    epilogue in fp32."""

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        super().__init__(problem, graph, config, "threads")

    def text(self) -> str:
        epilogue = self.epilogue()
        return bundle(
            "skinny_matmul", docstring(self.problem, self.graph, NAME, _SENTENCES),
            [*tunable(DOMAINS), "", *self._constraints()],
            [*epilogue, "", "", *self._launch()],
        )  # fmt: skip

    def _constraints(self) -> list[str]:
        p, space = self.products, Space(self.graph, tuple(f"inputs[{t}]" for t in range(len(self.inputs))))
        few = f"few = min({space.product(p.m)}, {space.product(p.n)})"
        return constraints(f"few, {len(p.pairs)}, {not p.f32}", "inputs = workload.inputs", few)

    def _launch(self) -> list[str]:
        body = [
            *self.view_lines(),
            f"multiply_few(mAs, mBs, mC, extras, stream, sizes, {self.products.pairs},",
            "             (threads_n, threads_k), rows, loads, cluster_k)",
        ]
        return [*self.launch_head(), *(f"    {line}" for line in body)]
