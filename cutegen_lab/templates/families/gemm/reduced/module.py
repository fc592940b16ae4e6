"""Writes the module of a matrix product with row reductions."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.bundle import bundle
from cutegen_lab.templates.emit.cute_text import divided_by_rows, number, tuple_text
from cutegen_lab.templates.emit.module import Space, approximate, constraints, docstring, signature, tunable
from cutegen_lab.templates.families.gemm.product_module import ProductModule
from cutegen_lab.templates.families.gemm.reduced.config import DOMAINS, NAME, exchanged
from cutegen_lab.templates.families.gemm.reduced.row_partials import from_parts
from cutegen_lab.templates.families.gemm.reduced.steps import Step, in_parts, steps
from cutegen_lab.templates.families.gemm.shape import Operand
from cutegen_lab.templates.families.kernel_module import COMBINE, WISHES
from cutegen_lab.templates.families.rows.online import Online, in_one_walk
from cutegen_lab.templates.frontend.expr import NEUTRAL, Graph, Load, Reduce


class ReducedModule(ProductModule):
    """Writes the module of a product (batches, m, n) whose epilogue reduces rows of n elements, in steps.

    Operands are bf16 or f16. Each step is a generated function: it takes fp32 values of a row and returns the values to
    keep and the terms to fold. The workspace holds ``parts``, f32 (reductions, batches, m, tiles of a row), and a copy
    of each operand that TMA cannot address.
    """

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        if approximate(problem.workload)[0]:
            graph = divided_by_rows(graph)
        elif isinstance(pair := in_one_walk(graph), Online):  # the total is in [1, n]: its reciprocal does not overflow
            graph = divided_by_rows(graph, pair.total)
        super().__init__(problem, graph, config, "mParts parts ready tiles")
        self.writer.extent = "n"
        self.steps, self.pair = steps(graph), in_parts(graph)
        self.written = graph.varies(graph.outputs[0].node)
        self.writer.reserve(["n", "columns", "work", "reads", "held", "loaded", "extras"])
        self.names: dict[int, str] = {}
        for index in (index for step in self.steps for index in step.folded):
            node = graph.nodes[index]
            assert isinstance(node, Reduce)
            self.names[index] = self.writer.name(self.writer.suggested.get(index, WISHES[node.op]))

    def text(self) -> str:
        sentences = (
            "One warp loads tiles by TMA into swizzled shared memory, several stages ahead of the warpgroups that "
            "multiply them. Rows of the result stay in registers while they are reduced: over the four lanes of a "
            "quad, and over the blocks of a cluster that share a row."
        )
        if self.pair is not False:
            sentences += " Wider rows are reduced tile by tile, and a second kernel combines the partial results."
        functions = self._functions()
        return bundle(
            "gemm_row_reduce_sm90", docstring(self.problem, self.graph, NAME, sentences),
            [*tunable(DOMAINS), "", *self._constraints(), "", "", *self._workspace()],
            [*self._from_parts(), *functions, "", "", *self._launch()],
        )  # fmt: skip

    def _constraints(self) -> list[str]:
        space = Space(self.graph, tuple(f"workload.inputs[{t}]" for t in range(len(self.inputs))))
        arguments = f"n, {exchanged(self.graph)}, {self.pair is not False}"
        return constraints(arguments, f"n = {space.product(self.products.n)}", rule="why_not_rows")

    def _from_parts(self) -> list[str]:
        """Lines of the second kernel's functions, for rows wider than a cluster's tiles."""
        if self.pair is False:
            return []
        lines = [f"FAST = {self.writer.fast}", "", ""] if isinstance(self.pair, Online) else []
        parts = {index: self.writer.name(f"{name}_of_tile") for index, name in self.names.items()}
        return [*lines, *from_parts(self.graph, self.names, parts, self.pair)]

    # --- the expressions ---

    def _functions(self) -> list[str]:
        """A function for each step and ``finish``, with their descriptions for the kernel: ``STEPS``, ``FINISH``."""
        lines, entries = list[str](), list[str]()
        for number_of, step in enumerate(self.steps):
            lines += self._step(f"step_{number_of}", step, entries)
        root = self.graph.outputs[0].node
        held = self.steps[-1].keep if self.written else ()
        env = self._named(held)
        reads = self._reads([root], env)
        lines += self._head("finish", held, list(self.names), reads, "The values to write for a row.")
        lines += [f"    {line}" for line in self.writer.assignments([root], env, {})]
        lines += [f"    return {self.writer.expression(root, env)[0]}", "", ""]
        lines += [
            "# Each step: (function, ((index of an auxiliary load, whether that varies along a row), …), number of",
            "# held values that it takes, combine functions of its terms, their neutral elements).",
            "# FINISH: (function, its auxiliary loads as above, number of held values, function that writes).",
            "STEPS = (",
            *entries,
            ")",
            f"FINISH = (finish, {tuple_text(self._numbered(reads))}, {len(held)}, "
            f"{'write_rows' if self.written else 'write_numbers'})",
        ]
        return lines

    def _step(self, name: str, step: Step, entries: list[str]) -> list[str]:
        known = [i for i in self.names if self.graph.depths()[i] < self.graph.depths()[step.folded[0]]]
        env = self._named(step.before, known)
        terms = [self.graph.nodes[i].args[0] for i in step.folded]
        reads = self._reads([*step.keep, *terms], env)
        lines = self._head(name, step.before, known, reads, "(values of a row to keep in registers, terms to reduce).")
        if isinstance(self.pair, Online) and self.pair.shift == self.pair.top and known:
            lines.append(f"    {self.names[self.pair.top]} = finite({self.names[self.pair.top]})")
        lines += [f"    {line}" for line in self.writer.assignments([*step.keep, *terms], env, {})]
        kept, folded = (tuple_text([self.writer.expression(i, env)[0] for i in of]) for of in (step.keep, terms))
        ops = [node.op for i in step.folded if isinstance(node := self.graph.nodes[i], Reduce)]
        entries.append(
            f"    ({name}, {tuple_text(self._numbered(reads))}, {len(step.before)}, "
            f"{tuple_text([COMBINE[op] for op in ops])}, {tuple_text([number(NEUTRAL[op]) for op in ops])}),"
        )
        return [*lines, f"    return {kept}, {folded}", "", ""]

    def _named(self, held: Sequence[int], known: Sequence[int] | None = None) -> dict[int, str]:
        """Names, by node, of the values with which a function starts."""
        names = {index: "x" if len(held) == 1 else f"x{at + 1}" for at, index in enumerate(held)}
        return names | {i: self.names[i] for i in (self.names if known is None else known)}

    def _reads(self, roots: Sequence[int], env: dict[int, str]) -> list[int]:
        """Nodes of the tensors that ``roots`` need. Adds their names to ``env``."""
        wanted = {i: n for i in self.writer.pending(roots, env) if isinstance(n := self.graph.nodes[i], Load)}
        env |= {i: self.inputs[load.tensor] for i, load in wanted.items()}
        return [i for i, load in wanted.items() if load.tensor in self.read]

    def _head(self, name: str, held: Sequence[int], known: Sequence[int], reads: Sequence[int], says: str) -> list[str]:
        tensors = [node.tensor for i in reads if isinstance(node := self.graph.nodes[i], Load)]
        values = self._named(held, known)
        return [
            "@cute.jit",
            *signature(name, [*values.values(), *(self.inputs[t] for t in tensors), *self.sizes, "n"]),
            f'    """{says}"""',
        ]

    def _numbered(self, reads: Sequence[int]) -> list[str]:
        order = list(self.read)
        loads = [(i, node) for i in reads if isinstance(node := self.graph.nodes[i], Load)]
        return [f"({order.index(load.tensor)}, {self.graph.varies(i)})" for i, load in loads]

    # --- the workspace and the launch ---

    def _workspace(self) -> list[str]:
        """Lines of ``workspace``: partial results of rows, and copies of operands that TMA cannot address."""
        space = Space(self.graph, tuple(f"inputs[{t}]" for t in range(len(self.inputs))))
        m, n, batches = (space.product(over) for over in (self.products.m, self.products.n, self.products.batch))
        lines = [
            "def workspace(workload, config):",
            '    """Workspace: partial results of rows wider than a cluster, and copies of operands for TMA."""',
            "    inputs = workload.inputs",
            f"    m, n, batches = {m}, {n}, {batches}",
            f'    parts = ({len(self.names)}, batches, m, -(-n // config["tile_n"]))',
            '    wide = n > config["tile_n"] * config["cluster_n"]',
            '    wanted = [("parts", "f32", parts if wide else (1, 1, 1, 1))]',
        ]
        for operand, view in self.views.items():
            x, dims = f"inputs[{operand.tensor}]", operand.dims
            spec = self.problem.workload.inputs[operand.tensor]
            count = "batches" if any(dims[d] is not None for d in self.products.batch) else "1"
            size = f"scratch_size({'m' if view == 'mA' else 'n'}, {x}.shape[{dims[-1]}])"
            matrix = tuple(axis for d in (*self.rows(operand), -1) if (axis := dims[d]) is not None)
            copied = f"({count}, {size}) if uneven({x}, {matrix}) else (1, 1)"
            room = f"({count}, {size})" if self._nested(operand) else copied
            lines.append(f'    wanted.append(("{spec.name}_copy", {x}.dtype.value, (1, *({room}))))')
        return [
            *lines,
            "    return wanted",
        ]

    def _nested(self, operand: Operand) -> bool:
        """Whether dimensions of one mode of the operand have no single stride."""
        name, dims = self.inputs[operand.tensor], operand.dims
        over = ((self.rows(operand), "rows"), (self.products.batch, "batches"))
        return any(self._mode(name, dims, *mode)[0].startswith("(") for mode in over)

    def _launch(self) -> list[str]:
        specs = [self.problem.workload.inputs[o.tensor].name for o in self.views]
        copies = [f"{name}_copy" for name in specs]
        operands = [f"as_tma({view}, {copy}, stream)" for view, copy in zip(self.views.values(), copies, strict=True)]
        body = [
            *self.view_lines(),
            "tiles = (n + tile_n - 1) // tile_n",
            f"mParts = parts_view(parts, m, tiles, batches, {len(self.names)})",
            f"ready = tma_views(({operands[0]},)), tma_views(({operands[1]},))",
            "multiply_and_reduce(*ready, mC, extras, mParts, stream, sizes, mA.shape[1],",
            "                    (tile_m, tile_n, tile_k), (cluster_m, cluster_n), stages, schedule, raster, group)",
        ]
        if self.pair is not False:
            body.append("combine(mParts, mC, extras, stream, sizes, tile_n, cluster_n)")
        return [*self.launch_head("parts", *copies), *(f"    {line}" for line in body)]
