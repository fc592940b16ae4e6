"""The text of a row kernel's module."""

from __future__ import annotations

from functools import cached_property

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.cute_text import divided_by_rows, number
from cutegen_lab.templates.expr import NEUTRAL, Graph, Index, Reduce
from cutegen_lab.templates.families.kernel_module import COMBINE, KernelModule
from cutegen_lab.templates.families.rows import pieces
from cutegen_lab.templates.families.rows.config import DOMAINS, MAX_ROW, MAX_VALUES, NAME
from cutegen_lab.templates.module import CUTE_TYPE, Space, approximate, variable
from cutegen_lab.templates.views import View


class RowModule(KernelModule):
    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        reserved = (
            "n rows vec row lane first stride rank arrived columns vectors chunks held steps step start mine ragged "
            "tidx bidx local_row source_row width smem warps partials"
        )
        graph = divided_by_rows(graph) if approximate(problem.workload)[0] else graph
        super().__init__(problem, graph, config, reserved, vector=graph.varies, extent="n", index="columns")
        self.outer = [d for d in range(len(graph.space)) if d not in graph.reduced]

    # --- the whole module ---

    def text(self) -> str:
        kernel, launch = self._kernel(), self._launch()
        sentences = (
            "A row stays in registers between its reductions: it is read once and written once. Each thread issues "
            "up to ``loads`` vector loads before it uses the first; where they do not cover its share, it walks the "
            "row in steps and reads it again for every reduction."
        )
        device = [
            *self.combiners(), pieces.FETCH, pieces.PUT, pieces.FOLD, pieces.ROW_REDUCE, pieces.CLUSTER_REDUCE
        ]  # fmt: skip
        return self.module(NAME, sentences, DOMAINS, self._constraints(), device, [kernel, launch])

    def _constraints(self) -> list[str]:
        shapes = [f"workload.inputs[{i}]" for i in range(len(self.inputs))]
        n = Space(self.graph, tuple(shapes)).product(self.graph.reduced)
        return [
            "def constraints(config, workload, device):",
            '    """Whole warps in a block of at most 1,024 threads; what a thread holds of the row in registers."""',
            f"    n = {n}",
            '    threads = config["threads_per_row"] * config["rows_per_block"]',
            '    vec = math.gcd(n, config["vec"])',
            '    chunks = -(-n // (vec * config["threads_per_row"] * config["cluster_n"]))',
            f"    fits = n <= {MAX_ROW} and threads % 32 == 0 and threads <= 1024",
            '    return fits and config["cluster_n"] <= config["threads_per_row"] and '
            f'vec * min(chunks, config["loads"]) <= {MAX_VALUES}',
        ]

    def _launch(self) -> list[str]:
        views = [f"    {variable('g', view.name)} = {self._view(view)}" for view in self.views]
        sizes = ["rows", "n", "width", "threads_per_row", "rows_per_block", "cluster_n", "loads", *self.sizes]
        arguments = ", ".join([*self.tensors, *sizes])
        return [
            *self.launch_head(),
            f"    rows = {self.space.product(self.outer)}",
            f"    n = {self.space.product(self.graph.reduced)}",
            "    # Shapes are Python ints here: the widest vector that divides the row needs no scalar tail.",
            f"    width = {self.views.width('n', self.graph.reduced)}",
            *self.size_lines(),
            *views,
            f"    row_kernel({arguments}).launch(",
            "        grid=[(rows + rows_per_block - 1) // rows_per_block * cluster_n, 1, 1],",
            "        block=[threads_per_row * rows_per_block, 1, 1],",
            "        cluster=[cluster_n, 1, 1] if cutlass.const_expr(cluster_n > 1) else None,",
            "        stream=stream,",
            "    )",
        ]

    def _view(self, view: View) -> str:
        """Text of a tensor seen as (values of a vector, vectors of a row, rows), or (rows) with one value a row."""
        shape, stride = self.space.outer_mode(view, self.outer, "rows")
        if not self._along(view):
            return f"cute.make_tensor({view.pointer}, cute.make_layout({shape}, stride={stride}))"
        step = view.step(self.graph.reduced)
        across = "width" if step == "1" else f"width * {step}"
        return (
            f"cute.make_tensor(\n        {view.pointer}, cute.make_layout((width, n // width, {shape}), "
            f"stride=({step}, {across}, {stride}))\n    )"
        )

    def _along(self, view: View) -> bool:
        return view.dims[self.graph.reduced[-1]] is not None

    # --- the kernel ---

    def _kernel(self) -> list[str]:
        constants = ("rows", "n", "vec", "threads_per_row", "rows_per_block", "cluster_n", "loads", *self.sizes)
        body = self._prologue() + self._loads() + self._passes() + self._stores()
        return self.kernel("row_kernel", self.tensors, constants, body)

    def _prologue(self) -> list[str]:
        reductions = self._reductions()
        lines = [
            "tidx, _, _ = cute.arch.thread_idx()",
            "bidx, _, _ = cute.arch.block_idx()",
            "lane = tidx % threads_per_row",
            "row = bidx // cluster_n * rows_per_block + tidx // threads_per_row",
            "# Threads past the last row work on it too, and store nothing: barriers stay uniform.",
            "source_row = cutlass.min(row, rows - 1)",
            "vectors = n // vec",
            "stride = threads_per_row * cluster_n  # vectors of a row that are loaded at once",
            "chunks = (vectors + stride - 1) // stride  # a thread's share, in vectors",
            "held = min(loads, chunks)  # of them at once",
            "steps = (chunks + held - 1) // held",
            "ragged = vectors % (stride * held) != 0",
            "rank = 0  # of this block among those that share its rows",
            "if cutlass.const_expr(cluster_n > 1):",
            "    rank = cute.arch.block_idx_in_cluster()",
            "first = rank * threads_per_row + lane",
            "mine = cute.make_layout((vec, held))",
            "",
            "smem = cutlass.utils.SmemAllocator()",
            "warps = max(threads_per_row // 32, 1)",
            "partials = cute.make_layout((rows_per_block, warps), stride=(warps, 1))",
        ]
        for index in reductions:
            lines.append(f"buffer{reductions.index(index)} = smem.allocate_tensor(Float32, partials, 16)")
        count = len(reductions)
        lines += [
            "if cutlass.const_expr(cluster_n > 1):",
            "    sent = cute.make_layout((cluster_n, rows_per_block))",
            *(f"    parts{i} = smem.allocate_tensor(Float32, sent, 16)" for i in range(count)),
            f"    arrived = smem.allocate_array(cutlass.Int64, num_elems={count})",
            "    if tidx == 0:",
            *(f"        cute.arch.mbarrier_init(arrived + {i}, 1)" for i in range(count)),
            "    cute.arch.mbarrier_init_fence()",
            "    cute.arch.cluster_arrive_relaxed()",
            "    cute.arch.cluster_wait()",
        ]
        return [*lines, ""]

    def _reductions(self) -> list[int]:
        return [i for i, node in enumerate(self.graph.nodes) if isinstance(node, Reduce)]

    # --- passes over the row: one a reduction, one that writes ---

    def _loads(self) -> list[str]:
        """Registers for the row; where one step covers it, its only reading. Values with one a row are read here."""
        lines = []
        for name in self._wide:
            lines.append(f"{variable('r', name)} = cute.make_rmem_tensor(mine, {variable('g', name)}.element_type)")
        lines += ["if cutlass.const_expr(ragged):", *(f"    {variable('r', name)}.fill(0.0)" for name in self._wide)]
        lines += ["if cutlass.const_expr(steps == 1):", *(f"    {self._fetch(name, 'first')}" for name in self._wide)]
        self.env: dict[int, str] = {}
        for index, view in self.views.of_load.items():
            name = view.name
            if name not in self._wide:
                lines.append(f"{name} = Float32({variable('g', name)}[source_row])")
                self.env[index] = name
        return [*lines, ""]

    @cached_property
    def _wide(self) -> list[str]:
        """Inputs with a value for each position of the row."""
        return [name for name in self.views.loaded if self._along(self.views.by_name[name])]

    def _fetch(self, name: str, start: str) -> str:
        return f"fetch({variable('g', name)}, {variable('r', name)}, source_row, {start}, stride, ragged)"

    def _pass(self, roots: list[int], env: dict[int, str], masked: bool) -> tuple[list[str], list[str]]:
        """(lines before the walk, first lines of its body) after which ``roots`` can be written from ``env``."""
        pending = self.writer.pending(roots, self.env)
        fixed = [i for i in pending if not self.graph.varies(i)]
        before = self.writer.assignments(fixed, self.env, self.local)
        env.update(self.env)
        needed = [(i, view.name) for i, view in self.views.of_load.items() if i in pending and i not in self.env]
        names = list(dict.fromkeys(name for _, name in needed))
        body = ["start = first + step * (stride * held)"]
        if names:
            body += ["if cutlass.const_expr(steps > 1):", *(f"    {self._fetch(name, 'start')}" for name in names)]
        indexed = any(isinstance(self.graph.nodes[i], Index) for i in pending)
        if indexed or masked:
            body.append(f"columns = positions(start, stride, mine, {'True' if indexed else 'ragged'})")
        for index, name in needed:
            env[index] = name
            line = f"{name} = {variable('r', name)}.load().to(Float32)"
            if line not in body:
                body.append(line)
        return before, body + self.writer.assignments(roots, env, self.local)

    def _passes(self) -> list[str]:
        lines: list[str] = []
        self.local: dict[int, str] = {}
        reductions = self._reductions()
        depths = self.graph.depths()
        for index in sorted(reductions, key=lambda i: (depths[i], i)):
            lines += [*self._reduction(index, reductions.index(index)), ""]
        return lines

    def _reduction(self, index: int, number_: int) -> list[str]:
        node = self.graph.nodes[index]
        assert isinstance(node, Reduce)
        env: dict[int, str] = {}
        before, body = self._pass([node.args[0]], env, masked=True)
        text, _ = self.writer.expression(node.args[0], env)
        if not self.graph.varies(node.args[0]):
            text = f"cute.full_like(cute.make_rmem_tensor(mine, Float32).load(), {text})"
        name = self.env[index] = self.reduction_name(index)
        neutral, combine = number(NEUTRAL[node.op]), COMBINE[node.op]
        return [
            *before,
            f"{name} = Float32({neutral})",
            "for step in cutlass.range(steps, unroll=1):",
            *(f"    {line}" for line in body),
            f"    {name} = {combine}({name}, fold({text}, {combine}, {neutral}, columns, n))",
            f"{name} = row_reduce({name}, buffer{number_}, {combine}, {neutral}, threads_per_row)",
            "if cutlass.const_expr(cluster_n > 1):",
            f"    {name} = cluster_reduce(",
            f"        {name}, parts{number_}, arrived + {number_}, rank, {combine}, threads_per_row, cluster_n",
            "    )",
        ]

    def _stores(self) -> list[str]:
        named = list(zip(self.outputs, self.graph.outputs, self.problem.workload.outputs, strict=True))
        wide = [(name, output.node) for name, output, _ in named if self._along(self.views.by_name[name])]
        single = [(n, output.node, spec) for n, output, spec in named if not self._along(self.views.by_name[n])]
        lines: list[str] = []
        if wide:
            env: dict[int, str] = {}
            before, body = self._pass([node for _, node in wide], env, masked=False)
            for name, node in wide:
                text, _ = self.writer.expression(node, env)
                register, target = variable("r", name), variable("g", name)
                if not self.graph.varies(node):
                    text = f"cute.full_like({register}.load(), {text}, Float32)"
                body.append(f"{register} = cute.make_rmem_tensor(mine, {target}.element_type)")
                body.append(f"{register}.store(({text}).to({target}.element_type))")
            body.append("if row < rows:")
            body += [
                f"    put({variable('r', name)}, {variable('g', name)}, row, start, stride, ragged)" for name, _ in wide
            ]
            lines += [*before, "for step in cutlass.range(steps, unroll=1):", *(f"    {line}" for line in body)]
        if single:
            lines += self.writer.assignments([node for _, node, _ in single], self.env, self.local)
            lines.append("if row < rows and first == 0:")
            for name, node, spec in single:
                text, _ = self.writer.expression(node, self.env)
                lines.append(f"    {variable('g', name)}[row] = {CUTE_TYPE[spec.dtype]}({text})")
        return lines
