"""Base of all families of matrix products: the operands' views and the epilogue."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import NotCovered
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.cute_text import Writer
from cutegen_lab.templates.emit.module import Space, approximate, call, launch_head, signature, text_of_tuple
from cutegen_lab.templates.families.gemm.shape import Operand, adjacent, products
from cutegen_lab.templates.frontend.expr import Dims, Graph
from cutegen_lab.templates.frontend.formula import formula
from cutegen_lab.templates.frontend.names import variable


class ProductModule:
    """Base of the classes that write the module of a matrix product. A subclass's ``text`` returns the source.

    Views of operands are (rows, k, batches); those of the result and of the epilogue's inputs are (m, n, batches). The
    epilogue computes in fp32. Sizes and strides count elements. ``reserved``: the family's own names in ``launch``,
    separated by spaces. Raises ProviderError if the result is not bf16, f16 or f32.
    """

    def __init__(self, problem: Problem, graph: Graph, config: Config, reserved: str) -> None:
        self.problem, self.graph, self.config = problem, graph, config
        self._reserved = {
            *f"m n k batches mC mAs mBs extras sizes pairs acc stream math {reserved}".split(),
            *config,
        }
        found = products(graph)
        assert found is not None
        self.products = found
        self.inputs = tuple(self._unreserved(t.name) for t in problem.workload.inputs)
        (self.output,) = problem.workload.outputs
        if self.output.dtype not in (DType.BF16, DType.F16, DType.F32):
            raise NotCovered(
                f"the templates write a matrix product's result as bf16, f16 or f32, not {self.output.dtype.value}"
            )
        self.space = Space(graph, self.inputs)
        self.sizes = {size.name: size.text(self.inputs) for size in graph.sizes()}
        self.read = {load.tensor: load.dims for _, load in graph.loads()}
        fast, coarse = approximate(problem.workload)
        self.writer = Writer(graph, graph.varies, fast=fast, coarse=coarse, extent="1.0", index="0.0")
        several = len(found.pairs) > 1
        self.accumulators = [f"acc{number + 1}" if several else "acc" for number in range(len(found.pairs))]
        self.writer.reserve([*self.accumulators, *self.inputs])
        self.views = {o: f"m{'AB'[right]}{number or ''}" for right, side in enumerate((found.lefts, found.rights))
                      for number, o in enumerate(side)}  # fmt: skip

    def _unreserved(self, name: str) -> str:
        """A tensor's name in ``launch`` and ``epilogue``: ``name``, or another if it is reserved (tensors are passed by
        position)."""
        return f"{name}_" if name in self._reserved else name

    # --- the epilogue ---

    def epilogue(self) -> list[str]:
        env = dict(zip(self.products.nodes, self.accumulators, strict=True))
        env |= {index: self.inputs[load.tensor] for index, load in self.graph.loads()}
        root = self.graph.outputs[0].node
        body = self.writer.assignments([root], env, {})
        text, _ = self.writer.expression(root, env)
        said = formula(self.graph, root, list(self.inputs)).replace('"', "'")
        return [
            *signature("epilogue", [*self.accumulators, *(self.inputs[t] for t in self.read), *self.sizes]),
            f'    """{said}, on fp32 vectors."""' if len(said) < 80 else '    """The epilogue, on fp32 vectors."""',
            *(f"    {line}" for line in body),
            f"    return {text}",
        ]

    # --- split-K ---

    def partials(self) -> list[str]:
        """The first lines of ``workspace``, which define ``wanted`` with the partial results of split-K."""
        space = Space(self.graph, tuple(f"inputs[{t}]" for t in range(len(self.inputs))))
        m, n, batches = (space.product(over) for over in (self.products.m, self.products.n, self.products.batch))
        return [
            "def workspace(workload, config):",
            '    """Workspace: partial results of split-K, and copies of operands that the kernel cannot read."""',
            "    inputs = workload.inputs",
            f"    results = ({batches}, {m}, {n})",
            '    split = config["split_k"]',
            '    wanted = [("partials", "f32", (split, *results) if split > 1 else (1, 1, 1, 1))]',
        ]

    # --- the launch ---

    @property
    def aux_loads(self) -> list[tuple[str, str, Dims]]:
        """(view, tensor, its dimensions) of each auxiliary load of the epilogue."""
        return [(variable("e", self.inputs[t]), self.inputs[t], dims) for t, dims in self.read.items()]

    @property
    def result(self) -> str:
        """The output's name in ``launch``."""
        return self._unreserved(self.output.name)

    def rows(self, operand: Operand) -> tuple[int, ...]:
        return self.products.m if operand in self.products.lefts else self.products.n

    def launch_head(self, *workspace: str) -> list[str]:
        return launch_head((*self.inputs, self.result, *workspace), self.config)

    def view_lines(self) -> list[str]:
        """Lines of ``launch``: ``m``, ``n``, ``batches``; operands as (rows, k, batches) in ``mAs`` and ``mBs``; the
        result ``mC`` and the auxiliary loads ``extras`` as (m, n, batches); ``sizes``, which the epilogue takes
        last."""
        p = self.products
        lines = [f"m = {self.space.product(p.m)}", f"n = {self.space.product(p.n)}"]
        lines += [f"batches = {self.space.product(p.batch)}", *(f"{n} = {text}" for n, text in self.sizes.items())]
        for operand in self.views:
            name, dims = self.inputs[operand.tensor], operand.dims
            over = self.rows(operand)
            rows = self._mode(name, dims, over, "m" if over is p.m else "n")
            along_k = (f"{name}.shape[{dims[-1]}]", f"{name}.stride[{dims[-1]}]")
            lines += _view(self.views[operand], name, [rows, along_k, self._mode(name, dims, p.batch, "batches")])
        for view, name, dims in [("mC", self.result, self.graph.outputs[0].dims), *self.aux_loads]:
            modes = [(p.m, "m"), (p.n, "n"), (p.batch, "batches")]
            lines += _view(view, name, [self._mode(name, dims, over, count) for over, count in modes])
        sides = ", ".join(text_of_tuple(self.views[o] for o in side) for side in (p.lefts, p.rights))
        extras, sizes = text_of_tuple(view for view, _, _ in self.aux_loads), text_of_tuple(self.sizes)
        return [*lines, f"mAs, mBs = {sides}", f"extras, sizes = {extras}, {sizes}"]

    def _mode(self, name: str, dims: Dims, over: Sequence[int], count: str) -> tuple[str, str]:
        """(shape, stride) of one mode: nested, innermost first, if its dimensions have no single stride."""
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
    """Lines that define ``view`` of tensor ``name``. ``modes``: (shape, stride) of rows, columns (or k), batches."""
    shape, stride = (", ".join(mode[part] for mode in modes) for part in (0, 1))
    return call(f"{view} = view", [f"{name}.iterator", f"({shape})", f"({stride})"], 0)
