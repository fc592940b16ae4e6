"""The text of a module for products with few rows."""

from __future__ import annotations

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.expr import Graph
from cutegen_lab.templates.families.gemm import pieces
from cutegen_lab.templates.families.gemm.product_module import ProductModule
from cutegen_lab.templates.families.skinny import kernel
from cutegen_lab.templates.families.skinny.config import DOMAINS, MANY, MAX_LOADS, MAX_SUMS, MOST, NAME, SMEM_BYTES
from cutegen_lab.templates.module import Space, clean, header, helpers, tunable

_CONSTRAINTS = '''
def constraints(config, workload, device):
    """Whole warps in a block of at most 1,024 threads; a thread's sums and loads in registers, what warps leave for
    each other in shared memory."""
    inputs = workload.inputs
    few = min({m}, {n})
    tile = -(-few // -(-few // MOST))
    threads = config["threads_n"] * config["threads_k"]
    warps = max(config["threads_k"] // max(32 // config["threads_n"], 1), 1)
    smem = 4 * config["rows"] * config["threads_n"] * tile * {pairs} * (warps + config["cluster_k"])
    lanes = config["threads_n"] % 8 == 0 and config["threads_k"] % 4 == 0
    sums = config["rows"] * (4 if {halves} and tile >= MANY and lanes else tile)
    registers = sums <= MAX_SUMS and config["rows"] * config["loads"] <= {loads}
    return threads % 32 == 0 and threads <= 1024 and registers and smem <= {smem}
'''


class SkinnyModule(ProductModule):
    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        super().__init__(problem, graph, config, "threads")

    def text(self) -> str:
        epilogue = self.epilogue()
        sentences = (
            "The large operand is read once, by vectors, and multiplied with the few rows of the other, by FMAs or on "
            "the tensor cores, adding up in fp32. The threads of a block, and the blocks of a cluster, share k; the "
            "order of every sum is fixed. The epilogue is applied in fp32."
        )
        p = self.products
        space = Space(self.graph, tuple(f"inputs[{t}]" for t in range(len(self.inputs))))
        rules = _CONSTRAINTS.format(
            m=space.product(p.m), n=space.product(p.n), pairs=len(p.pairs), halves=not p.f32, loads=MAX_LOADS,
            smem=SMEM_BYTES,
        )  # fmt: skip
        lines = header(self.problem, self.graph, NAME, sentences)
        lines[-2:-2] = ["import cutlass.utils as utils", "from cutlass.cute.nvgpu import warp"]
        lines += [*tunable(DOMAINS), f"MOST = {MOST}  # few rows that a block takes",
                  f"MANY = {MANY}  # few rows of 16 bits from which they go through the tensor cores",
                  f"MAX_SUMS = {MAX_SUMS}  # of a thread", "", ""]  # fmt: skip
        lines += [*rules.strip().splitlines(), "", *helpers(self.writer.helpers), "", *epilogue]
        for text in (pieces.ACCESS, pieces.WIDEST, kernel.DEVICE, kernel.KERNEL, kernel.LAUNCH):
            filled = self.filled(text, at=("row + i", "column + j"))
            lines += ["", "", *filled.strip().splitlines()]
        return clean([*lines, "", "", *self._launch()])

    def _launch(self) -> list[str]:
        views = [view for view, _, _ in self.fetched]
        whole = self.handed_on
        turned = "".join(f"turned({name}), " if name in views else f"{name}, " for name in self.passed)
        swapped = tuple((right, left) for left, right in self.products.pairs)
        rest = "(threads_n, threads_k), rows, loads, cluster_k"
        body = [
            *self.view_lines(),
            "if cutlass.const_expr(m <= n):",
            f"    multiply_few(lefts, rights, turned(mC), {turned}stream, {self.products.pairs}, {rest})",
            "else:",
            f"    multiply_few(rights, lefts, mC, {whole}stream, {swapped}, {rest})",
        ]
        return [*self.launch_head(), *(f"    {line}" for line in body)]
