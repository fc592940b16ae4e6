"""Writes the module of a matrix product for Hopper."""

from __future__ import annotations

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.bundle import bundle
from cutegen_lab.templates.emit.module import Space, constraints, docstring, text_of_tuple, tunable
from cutegen_lab.templates.families.gemm.config import DOMAINS, NAME, TF32_DOMAINS, TF32_NAME, kind_of
from cutegen_lab.templates.families.gemm.product_module import ProductModule
from cutegen_lab.templates.families.gemm.shape import Operand
from cutegen_lab.templates.frontend.expr import Graph


class GemmModule(ProductModule):
    """Writes the module of a wgmma product (batches, m, n), with an fp32 epilogue and a plain kernel for small
    products.

    Operands are bf16, f16, 8-bit floats, or f32 (as TF32 or split fp16). The workspace holds ``partials``, f32
    (split_k, batches, m, n), and a copy of each operand that TMA or wgmma cannot read, with its scales if it is split.
    """

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        super().__init__(problem, graph, config, "mPart partials fp32_operands terms by_tma ready")
        self.converted = [o for o in self.views if self._needs_copy(o)]

    def _needs_copy(self, operand: Operand) -> bool:
        """Whether the operand is copied: split or widened to fp16, or in a layout that TMA or wgmma cannot read."""
        specs = [workload.inputs[operand.tensor] for workload in self.problem.workloads]
        even = 16 // specs[0].dtype.itemsize
        walks = [(d, *walk) for spec in specs for d, walk in enumerate(zip(spec.stride, spec.shape, strict=True))]
        uneven = any(size > 1 and step != 1 and step % even for _, step, size in walks)
        across = any(size > 1 and (step == 1) != (d == operand.dims[-1]) for d, step, size in walks)
        p = self.products
        return p.halved or p.as_f16 or (even == 8 and uneven) or (p.along_k and (uneven or across))

    def text(self) -> str:
        epilogue = self.epilogue()
        sentences = (
            "One warp loads tiles by TMA into swizzled shared memory, several stages ahead of the warpgroups that "
            "multiply them; a plain kernel serves small products and operands that TMA cannot address. Both apply the "
            "epilogue in fp32."
        )
        if self.products.tf32:
            sentences += " fp32 operands are rounded to TF32, as the problem allows."
        if self.products.halved:
            sentences += (
                " Each fp32 operand is split into two fp16 numbers, and three products replace one; results that would "
                "be less accurate than fp32 sums are computed again from the fp32 operands."
            )
        if self.products.f8:
            sentences += " The sum of each step along k is added to a total in fp32: wgmma keeps only 13 bits of it."
        if self.products.as_f16:
            sentences += " 8-bit operands are converted to fp16 (exactly): wgmma keeps only 13 bits of 8-bit sums."
        name, domains = (TF32_NAME, TF32_DOMAINS) if self.products.tf32 else (NAME, DOMAINS)
        return bundle(
            "gemm_sm90", docstring(self.problem, self.graph, name, sentences),
            [*tunable(domains), "", *self._constraints(), "", "", *self._workspace()],
            [*self._variants(), *epilogue, "", "", *self._launch()],
        )  # fmt: skip

    def _constraints(self) -> list[str]:
        p = self.products
        results = "results = math.prod(workload.outputs[0].shape)"
        return constraints(f'results, "{kind_of(p)}", {len(p.pairs)}, {p.loads}', results)

    def _variants(self) -> list[str]:
        """Lines of definitions that replace those of the kernel file."""
        if self.products.tf32:
            return ["make_mma, views_of = tf32_mma, tf32_views", "", ""]
        return ["restore = restored", "", ""] if self.products.halved else []

    # --- the workspace ---

    def _workspace(self) -> list[str]:
        """Lines of ``workspace``. :meth:`_scratch` has the names of its tensors in ``launch``."""
        inputs = tuple(f"inputs[{t}]" for t in range(len(self.inputs)))
        space = Space(self.graph, inputs)
        lines = self.partials()
        for operand in self.converted:
            dims, rows = operand.dims, space.product(self.rows(operand))
            count = "results[0]" if any(dims[d] is not None for d in self.products.batch) else "1"
            spec, x = self.problem.workload.inputs[operand.tensor], inputs[operand.tensor]
            copies = 2 if self.products.halved else 1
            dtype = '"f16"' if self.products.halved or self.products.as_f16 else f"{x}.dtype.value"
            size = f"{'tf32_' if self.products.tf32 else ''}scratch_size({rows}, {x}.shape[{dims[-1]}])"
            lines.append(f'    wanted.append(("{spec.name}_scratch", {dtype}, ({copies}, {count}, {size})))')
            if self.products.halved:
                lines.append(f'    wanted.append(("{spec.name}_scale", "f32", ({count}, {rows}, 4)))')
        return [*lines, "    return wanted"]

    def _scratch(self) -> list[str]:
        scales = ("scratch", "scale") if self.products.halved else ("scratch",)
        return ["partials", *(f"{self.views[o]}_{kind}" for o in self.converted for kind in scales)]

    # --- the launch ---

    def _launch(self) -> list[str]:
        body = [
            *self.view_lines(),
            f"pairs, fp32_operands = {self.products.pairs}, ()",
            *self._conversion(),
            "multiply(mAs, mBs, by_tma, fp32_operands, mC, partials, extras, stream, sizes, pairs, split_k,",
            "         (tile_m, tile_n, tile_k), (cluster_m, cluster_n), stages, schedule, raster, group)",
        ]
        return [*self.launch_head(*self._scratch()), *(f"    {line}" for line in body)]

    def _conversion(self) -> list[str]:
        """Lines that convert operands for TMA: fp32 ones are split, others copied."""
        if not self.converted:
            return ["by_tma = mAs, mBs"]
        rooms = self._by_side("scratch")
        if self.products.halved:
            scales = self._by_side("scale")
            return [
                "by_tma, fp32_operands = halved(",
                f"    (mAs, mBs), {rooms}, {scales}, mC, pairs, stream",
                ")",
            ]
        small = "((), ())" if self.products.as_f16 else "(mAs, mBs)"
        copy = "copied_along_k" if self.products.tf32 else "copied_row_by_row"
        return [f"by_tma = copied((mAs, mBs), {rooms}, mC, {small}, stream, {copy})"]

    def _by_side(self, kind: str) -> str:
        """Text: the workspace tensors of the A operands, then those of the B operands; None for an operand that is not
        converted."""
        sides = (
            text_of_tuple(f"{self.views[o]}_{kind}" if o in self.converted else "None" for o in side)
            for side in (self.products.lefts, self.products.rights)
        )
        return text_of_tuple(sides)
