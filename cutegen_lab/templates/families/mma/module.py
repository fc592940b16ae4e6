"""The text of a module for GPUs before Hopper."""

from __future__ import annotations

from collections.abc import Iterator

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.expr import Graph
from cutegen_lab.templates.families.gemm.product_module import ProductModule
from cutegen_lab.templates.families.mma import kernel
from cutegen_lab.templates.families.mma.config import DOMAINS, FULL, MAX_SUMS, NAME
from cutegen_lab.templates.module import clean, functions, header, helpers, tunable

_IMPORTS = """
import cutlass.utils as utils
from cutlass.cute.nvgpu import cpasync, warp
"""
_CONSTRAINTS = '''
def constraints(config, workload, device):
    """Warps have 16 rows and columns at least; accumulators stay in registers, stages in shared memory. One product
    alone is added up from parts, and only where tiles are few."""
    tile_m, tile_n = config["tile_m"], config["tile_n"]
    warps_m, warps_n, split = config["warps_m"], config["warps_n"], config["split_k"]
    sums = tile_m * tile_n * {sums} // (32 * warps_m * warps_n)
    smem = shared_bytes((tile_m, tile_n, config["tile_k"]), config["stages"])
    few = split * math.prod(workload.outputs[0].shape) <= {full} * tile_m * tile_n and {products} == 1
    fits = tile_m >= 16 * warps_m and tile_n >= 16 * warps_n and sums <= {most} and smem <= {smem}
    return fits and (split == 1 or few)


def shared_bytes(tile_shape_mnk, stages):
    """Of the operands' stages, or of a tile of results where that is more."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    rows = tile_m * {lefts} + tile_n * {rights}
    return max(stages * rows * tile_k * {itemsize}, tile_m * (tile_n * 4 + 16))
'''


class MmaModule(ProductModule):
    """``smem_bytes`` are a block's most, ``sms`` the multiprocessors of the GPU it is for."""

    def __init__(self, problem: Problem, graph: Graph, config: Config, smem_bytes: int, sms: int) -> None:
        super().__init__(problem, graph, config, "mPart partials")
        self.smem_bytes, self.sms = smem_bytes, sms

    def text(self) -> str:
        epilogue, p = self.epilogue(), self.products
        sentences = (
            "Tiles come by cp.async into swizzled shared memory, stages ahead of the warps that multiply them on the "
            "tensor cores; a plain kernel serves operands of different types. Either applies the epilogue in fp32."
        )
        if p.tf32:
            sentences += " fp32 operands are rounded to TF32 before they are multiplied, as the problem allows."
        if p.halved:
            sentences += " fp32 operands are multiplied as two tf32 halves each, three products for one."
        rules = _CONSTRAINTS.format(
            sums=len(p.pairs) * (2 if p.halved else 1), full=FULL * self.sms, products=len(p.pairs),
            most=MAX_SUMS[p.halved], smem=self.smem_bytes, lefts=len(p.lefts), rights=len(p.rights),
            itemsize=4 if p.f32 else 2,
        )  # fmt: skip
        lines = header(self.problem, self.graph, NAME, sentences)
        lines[-2:-2] = _IMPORTS.strip().splitlines()
        lines += [*tunable(DOMAINS), "", *rules.strip().splitlines(), "", "", *self.partials(), "    return wanted", ""]
        lines += [*helpers(self.writer.helpers), "", *epilogue]
        for text in self._texts():
            wide = "True" if text in (kernel.KERNEL, kernel.TF32_KERNEL) else "False"
            lines += ["", "", *self.filled(text, wide=wide).strip().splitlines()]
        return clean([*lines, "", "", *self._launch()])

    def _texts(self) -> Iterator[str]:
        yield from map(functions, ("device.tile_walk", "device.epilogue_access", "device.vectors"))
        if self.products.halved:
            yield functions("device.fp32_recompute")
        yield kernel.DEVICE
        yield from (kernel.ROUNDED, kernel.TF32_KERNEL) if self.products.tf32 else (kernel.KERNEL,)
        yield kernel.LAUNCH
        yield from map(functions, ("split_k_reduce", "plain_matmul"))

    def _launch(self) -> list[str]:
        pairs, names = self.products.pairs, self.handed_on
        rest = "(tile_m, tile_n, tile_k), stages, (warps_m, warps_n), raster, group"

        def multiply(target: str, split: str) -> list[str]:
            return [
                "multiply_by_mma(",
                f"    lefts, rights, {target}, {names}stream, {pairs}, {split}, {rest},",
                ")",
            ]

        body = [
            *self.view_lines(),
            *self.extra_lines(),
            "if cutlass.const_expr(alike((*lefts, *rights))):",
            *(f"    {line}" for line in self.in_parts(multiply)),
            "else:",
            f"    multiply_plainly(lefts, rights, mC, extras, stream, sizes, {pairs})",
        ]
        return [*self.launch_head("partials"), *(f"    {line}" for line in body)]
