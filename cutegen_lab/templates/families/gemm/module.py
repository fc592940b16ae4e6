"""The text of a GEMM's module."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.cute_text import Writer
from cutegen_lab.templates.expr import Dims, Graph
from cutegen_lab.templates.families.gemm import pieces, plain, wgmma
from cutegen_lab.templates.families.gemm.config import (
    ACCUMULATORS,
    DOMAINS,
    EPI_STAGE,
    NAME,
    RESIDENT,
    SMEM_BYTES,
)
from cutegen_lab.templates.families.gemm.shape import adjacent, product
from cutegen_lab.templates.formula import formula
from cutegen_lab.templates.module import (
    Space,
    approximate,
    clean,
    constexprs,
    header,
    helpers,
    signature,
    tunable,
    variable,
)

_IMPORTS = """
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90
from cutlass.cute.nvgpu import cpasync, warp, warpgroup
"""
_CONSTRAINTS = f'''
def constraints(config, workload, device):
    """Accumulators stay in registers; ``stages`` is what fits shared memory, or 8: as many as fit."""
    tile_shape_mnk = (config["tile_m"], config["tile_n"], config["tile_k"])
    pingpong = config["schedule"] == "pingpong"
    team_groups = 1 if pingpong else min(config["tile_m"] // 64, 2)
    registers = config["tile_m"] * config["tile_n"] // (128 * team_groups)
    fit = stages_that_fit(tile_shape_mnk, 2 if pingpong else team_groups)
    return registers <= {ACCUMULATORS} and fit >= 2 and (config["stages"] <= fit or config["stages"] == 8)


def stages_that_fit(tile_shape_mnk, consumers):
    """Pipeline stages of 16-bit tiles that a block's shared memory has room for, beside results on their way out."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    return ({SMEM_BYTES} - 2048 - consumers * 64 * 128 * EPI_STAGE) // ((tile_m + tile_n) * tile_k * 2)
'''
_TAKEN = frozenset({"m", "n", "k", "batches", "mA", "mB", "mC", "tma_a", "tma_b", "same", "acc", "stream", *DOMAINS})


def _free(name: str) -> str:
    """A tensor's name in ``launch`` and in the epilogue, whose parameters go by position."""
    return f"{name}_" if name in _TAKEN else name


class GemmModule:
    """Raises ProviderError where the result is no floating-point number of 16 or 32 bits."""

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        self.problem, self.graph, self.config = problem, graph, config
        found = product(graph)
        assert found is not None
        self.product = found
        self.inputs = tuple(_free(t.name) for t in problem.workload.inputs)
        (self.output,) = problem.workload.outputs
        if self.output.dtype not in (DType.BF16, DType.F16, DType.F32):
            raise ProviderError(
                f"the templates write a matrix product's result as bf16, f16 or f32, not {self.output.dtype.value}",
                "Try --provider openai (a model writes the kernel), manual (paste one) or replay:FILE.",
            )
        self.space = Space(graph, self.inputs)
        self.read = {load.tensor: load.dims for _, load in graph.loads()}
        fast, coarse = approximate(problem.workload)
        self.writer = Writer(graph, graph.varies, fast=fast, coarse=coarse, extent="1.0", index="0.0")
        self.writer.reserve(["acc", *self.inputs])

    def text(self) -> str:
        epilogue = self._epilogue()
        sentences = (
            "Where TMA can address both operands, one warp loads tiles into swizzled shared memory, stages ahead of "
            "the warpgroups that multiply them; elsewhere, and in fp32, a plain kernel does it. Either applies the "
            "epilogue in fp32."
        )
        lines = [line for line in header(self.problem, self.graph, NAME, sentences) if line != "import math"]
        lines[-2:-2] = _IMPORTS.strip().splitlines()
        lines += tunable(DOMAINS)
        lines += [f"EPI_STAGE = {EPI_STAGE}  # pieces of results on their way out, for each team"]
        lines += [f"RESIDENT = {RESIDENT}  # clusters of so many blocks that run at a time, on an H200", "", ""]
        lines += [*_CONSTRAINTS.strip().splitlines(), "", *helpers(self.writer.helpers), "", *epilogue]
        for text in (
            pieces.WALK,
            pieces.ACCESS,
            wgmma.KERNEL,
            pieces.TMA_VIEW,
            wgmma.LAUNCH,
            plain.KERNEL,
            plain.LAUNCH,
        ):
            lines += ["", "", *self._filled(text).strip().splitlines()]
        return clean([*lines, "", "", *self._launch()])

    def _epilogue(self) -> list[str]:
        env = {self.product.node: "acc"}
        env |= {index: self.inputs[load.tensor] for index, load in self.graph.loads()}
        root = self.graph.outputs[0].node
        body = self.writer.assignments([root], env, {})
        text, _ = self.writer.expression(root, env)
        said = formula(self.graph, root, list(self.inputs)).replace('"', "'")
        return [
            *signature("epilogue", ["acc", *(self.inputs[t] for t in self.read)]),
            f'    """{said}, of vectors in fp32."""' if len(said) < 80 else '    """Of vectors in fp32."""',
            *(f"    {line}" for line in body),
            f"    return {text}",
        ]

    def _filled(self, text: str) -> str:
        """A piece with the epilogue's tensors in it."""
        wide = text is wgmma.KERNEL  # it takes results in pieces, neighbours in n next to each other
        row, column = ("epi_row", "epi_column") if wide else ("row", "column")
        views = [variable("e", self.inputs[t]) for t in self.read]
        parts = {
            "$parameters": [f"{view}: cute.Tensor," for view in views],
            "$fetches": [f"fetch({view}, cC, {row}, {column}, batch, (m, n), {wide})," for view in views],
        }
        lines: list[str] = []
        for line in text.splitlines():
            indent = line[: len(line) - len(line.lstrip())]
            lines += [indent + part for part in parts.get(line.strip(), [line.strip()])]
        return "\n".join(lines).replace(" $names", "".join(f" {view}," for view in views))

    def _launch(self) -> list[str]:
        p, out = self.product, _free(self.output.name)
        left, right = self.inputs[p.left], self.inputs[p.right]
        epilogue = [(variable("e", self.inputs[t]), self.inputs[t], dims) for t, dims in self.read.items()]
        body = [f"m = {self.space.product(p.m)}", f"n = {self.space.product(p.n)}"]
        body += [f"k = {left}.shape[{p.left_dims[-1]}]", f"batches = {self.space.product(p.batch)}"]
        along_k = [("k", f"{name}.stride[{dims[-1]}]") for name, dims in ((left, p.left_dims), (right, p.right_dims))]
        batches = [
            self._mode(left, p.left_dims, p.batch, "batches"),
            self._mode(right, p.right_dims, p.batch, "batches"),
        ]
        body += _view("mA", left, [self._mode(left, p.left_dims, p.m, "m"), along_k[0], batches[0]])
        body += _view("mB", right, [self._mode(right, p.right_dims, p.n, "n"), along_k[1], batches[1]])
        for view, name, dims in [("mC", out, self.graph.outputs[0].dims), *epilogue]:
            modes = [(p.m, "m"), (p.n, "n"), (p.batch, "batches")]
            body += _view(view, name, [self._mode(name, dims, over, count) for over, count in modes])
        names = "".join(f"{view}, " for view, _, _ in epilogue)
        body += [
            "tma_a, tma_b = tma_view(mA, (1, 0)), tma_view(mB, (1, 0))",
            "same = mA.element_type == mB.element_type and mA.element_type.width == 16",
            "if cutlass.const_expr(same and tma_a is not None and tma_b is not None):",
            "    multiply_by_wgmma(",
            f"        tma_a, tma_b, mC, {names}stream, k, (tile_m, tile_n, tile_k), (cluster_m, cluster_n),",
            "        stages, schedule, raster, group,",
            "    )",
            "else:",
            f"    multiply_plainly(mA, mB, mC, {names}stream)",
        ]
        tensors = [f"{name}: cute.Tensor" for name in (*self.inputs, out)]
        head = signature("launch", [*tensors, "stream: cuda.CUstream", *constexprs(self.config)])
        return ["@cute.jit", *head, *(f"    {line}" for line in body)]

    def _mode(self, name: str, dims: Dims, over: Sequence[int], count: str) -> tuple[str, str]:
        """(shape, stride) of one mode; a nested one, innermost first, where the dimensions lie unevenly."""
        walked = [d for d in over if dims[d] is not None]
        if not walked:
            return count, "0"
        named = zip(self.inputs, self.problem.workload.inputs, strict=True)
        strided = any(name == mine and spec.strides for mine, spec in named)
        if len(over) == 1 or (adjacent(dims, over) and not strided):
            return count, f"{name}.stride[{dims[over[-1]]}]"
        sizes = ", ".join(self.space.size(d) for d in reversed(over))
        strides = ", ".join("0" if dims[d] is None else f"{name}.stride[{dims[d]}]" for d in reversed(over))
        return f"({sizes})", f"({strides})"


def _view(view: str, name: str, modes: Sequence[tuple[str, str]]) -> list[str]:
    """``view`` of tensor ``name`` with these (shape, stride) modes: rows, columns (or k), batches."""
    shape, stride = (", ".join(mode[part] for mode in modes) for part in (0, 1))
    layout = f"cute.make_layout(({shape}), stride=({stride}))"
    line = f"{view} = cute.make_tensor({name}.iterator, {layout})"
    if len(line) <= 110:
        return [line]
    return [f"{view} = cute.make_tensor(", f"    {name}.iterator, {layout}", ")"]
