"""The text of a GEMM's module."""

from __future__ import annotations

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.bundle import bundle
from cutegen_lab.templates.emit.module import Space, constraints, docstring, text_of_tuple, tunable
from cutegen_lab.templates.families.gemm.config import DOMAINS, NAME, TF32_DOMAINS, TF32_NAME, kind_of
from cutegen_lab.templates.families.gemm.product_module import ProductModule
from cutegen_lab.templates.families.gemm.shape import Operand
from cutegen_lab.templates.frontend.expr import Graph

LEAST = 1 << 18  # products of numbers below which one plain kernel is faster than two that convert and multiply


class GemmModule(ProductModule):
    """One module's text in the making: a product of shape (batches, m, n) by wgmma, its epilogue in fp32, and a plain
    kernel for small products. Operands that TMA or wgmma cannot read as they are get copies in a workspace."""

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        super().__init__(problem, graph, config, "mPart partials fp32_operands terms by_tma ready")
        self.converted = [o for o in self.views if self._to_convert(o)]

    def _to_convert(self, operand: Operand) -> bool:
        """Is it to be halved, or do its rows begin where TMA cannot read, or not lie along k where wgmma needs it?"""
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
            "One warp loads tiles by TMA into swizzled shared memory, stages ahead of the warpgroups that multiply "
            "them; a plain kernel serves small products and what TMA cannot address. Either applies the epilogue in "
            "fp32."
        )
        if self.products.tf32:
            sentences += " fp32 operands are rounded to TF32 on their way, as the problem allows."
        if self.products.halved:
            sentences += (
                " fp32 operands are multiplied as two fp16 halves each, three products for one; results that halves "
                "would leave further off than fp32's own sums are computed again from the operands."
            )
        if self.products.f8:
            sentences += " What a step along k adds up is added to a total in fp32: wgmma keeps 13 bits of such sums."
        if self.products.as_f16:
            sentences += " 8-bit operands are multiplied as fp16, which holds them: wgmma keeps 13 bits of their sums."
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
        """What takes the place of the kernel file's own."""
        if self.products.tf32:
            return ["make_mma = tf32_mma", "", ""]
        return ["restore = restored", "", ""] if self.products.halved else []

    # --- the workspace ---

    def _workspace(self) -> list[str]:
        """``workspace``'s text; :meth:`_scratch` has its tensors' names in ``launch``."""
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
            *self._choice(),
        ]
        return [*self.launch_head(*self._scratch()), *(f"    {line}" for line in body)]

    def _conversion(self) -> list[str]:
        """Operands that TMA cannot read as they are: halves of fp32, copies of the others."""
        if not self.converted:
            return ["by_tma = mAs, mBs"]
        p = self.products
        large = f"m * n * batches * cute.size({self.views[p.lefts[0]]}, mode=[1]) >= {LEAST}"
        if not p.halved:
            lines = [f"by_tma = {'(), ()' if p.as_f16 else 'mAs, mBs'}", f"if cutlass.const_expr({large}):"]
            for o in self.converted:
                view = self.views[o]
                call = (
                    f"copied_along_k({view}, {view}_scratch, stream)"
                    if p.tf32
                    else f"converted({view}, {view}_scratch, None, copy_row, stream)[0]"
                )
                lines += [f"    {view}_copy = {call}"]
            sides = [text_of_tuple(self.views[o] + "_copy" * (o in self.converted) for o in side)
                     for side in (p.lefts, p.rights)]  # fmt: skip
            return [*lines, f"    by_tma = {sides[0]}, {sides[1]}"]
        lines = ["by_tma = (), ()", f"if cutlass.const_expr({large}):"]
        for o in self.converted:
            view, rows = self.views[o], "m" if o in p.lefts else "n"
            batch = f"4 * {rows} if {view}_scale.shape[0] > 1 else 0"
            lines += [
                f"    {view}_scales = cute.make_tensor(",
                f"        {view}_scale.iterator, cute.make_layout((4, {rows}, batches), stride=(1, 4, {batch}))",
                "    )",
                f"    {view}_halves = converted({view}, {view}_scratch, {view}_scales, halve_row, stream)",
            ]
        sides = [" + ".join(f"{self.views[o]}_halves" for o in side) for side in (p.lefts, p.rights)]
        exact = [(self.views[p.lefts[left]], self.views[p.rights[right]]) for left, right in p.pairs]
        lines += [f"    by_tma = {sides[0]}, {sides[1]}", "    fp32_operands = ("]
        lines += [f"        ({a}, {b}, {a}_scales, {b}_scales)," for a, b in exact]
        return [*lines, "    )"]

    def _choice(self) -> list[str]:
        def multiply(target: str, split: str) -> list[str]:
            return [
                f"multiply_by_wgmma(*ready, {target}, fp32_operands, extras, stream, sizes, k, terms, {split}, "
                "(tile_m, tile_n, tile_k),",
                "                  (cluster_m, cluster_n), stages, schedule, raster, group, None, None)",
            ]

        view = "tf32_views" if self.products.tf32 else "tma_views"
        return [
            f"ready = {view}(by_tma[0]), {view}(by_tma[1])",
            "if cutlass.const_expr(None not in ready and fit_together(ready, (*mAs, *mBs))):",
            "    k, terms = cute.size(mAs[0], mode=[1]), terms_of(pairs, len(fp32_operands) > 0)",
            *(f"    {line}" for line in self.in_parts(multiply)),
            "else:",
            "    multiply_plainly(mAs, mBs, mC, extras, stream, sizes, pairs)",
        ]
