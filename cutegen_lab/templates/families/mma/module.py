"""Writes the module of a matrix product for GPUs before Hopper."""

from __future__ import annotations

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.bundle import bundle
from cutegen_lab.templates.emit.module import constraints, docstring, tunable
from cutegen_lab.templates.families.gemm.product_module import ProductModule
from cutegen_lab.templates.families.mma.config import DOMAINS, NAME, limit_arguments
from cutegen_lab.templates.frontend.expr import Graph


class MmaModule(ProductModule):
    """Writes the module of an mma.sync product (batches, m, n) of bf16, f16 or f32 operands, with an fp32 epilogue. The
    workspace holds ``partials``, f32 (split_k, batches, m, n). ``smem_bytes``: shared memory of a block. ``sms``: SMs
    of the GPU."""

    def __init__(self, problem: Problem, graph: Graph, config: Config, smem_bytes: int, sms: int) -> None:
        super().__init__(problem, graph, config, "mPart partials")
        self.smem_bytes, self.sms = smem_bytes, sms

    def text(self) -> str:
        epilogue, p = self.epilogue(), self.products
        sentences = (
            "cp.async loads tiles into swizzled shared memory, several stages ahead of the warps that multiply them on "
            "the tensor cores; a plain kernel serves operands of different types. Both apply the epilogue in fp32."
        )
        if p.tf32:
            sentences += " fp32 operands are rounded to TF32 before they are multiplied, as the problem allows."
        if p.halved:
            sentences += " fp32 operands are multiplied as two tf32 halves each, three products for one."
        return bundle(
            "gemm_sm80", docstring(self.problem, self.graph, NAME, sentences),
            [*tunable(DOMAINS), "", *self._constraints(), "", "", *self.partials(), "    return wanted"],
            [*epilogue, "", "", *self._launch()],
        )  # fmt: skip

    def _constraints(self) -> list[str]:
        numbers = ", ".join(
            f"{name}={value}" for name, value in limit_arguments(self.products, self.smem_bytes, self.sms).items()
        )
        return constraints(f"results, {numbers}", "results = math.prod(workload.outputs[0].shape)")

    def _launch(self) -> list[str]:
        p, config = self.products, "(tile_m, tile_n, tile_k), stages, (warps_m, warps_n), raster, group"
        body = [
            *self.view_lines(),
            f"multiply(mAs, mBs, mC, partials, extras, stream, sizes, {p.pairs}, split_k, {config}, {p.tf32})",
        ]
        return [*self.launch_head("partials"), *(f"    {line}" for line in body)]
