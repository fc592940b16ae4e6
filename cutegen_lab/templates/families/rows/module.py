"""The text of a row kernel's module."""

from __future__ import annotations

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.cute_text import divided_by_rows
from cutegen_lab.templates.emit.module import Space, approximate, constraints
from cutegen_lab.templates.families.finish import finishing_function, finishing_launch
from cutegen_lab.templates.families.rows.config import DOMAINS, NAME
from cutegen_lab.templates.families.rows.online import Online, in_one_walk
from cutegen_lab.templates.families.rows.passes import Passes
from cutegen_lab.templates.families.rows.skewed import skewed
from cutegen_lab.templates.frontend.expr import Graph

_SKEW = [
    "begin = source_row * (n // vec) + source_row * (n % vec) // vec  # the first vector it touches",
    "skew = source_row * (n % vec) % vec  # values of the row before in that",
]
_TURNS = [
    "    groups = (rows + rows_per_block - 1) // rows_per_block",
    "    turns = min(max(groups // 512, 1), 8) if cluster_n > 1 else 1  # of a block, which keeps what rows share",
]
_STARTS = ["if cutlass.const_expr(overlapping()):", "    cute.arch.griddepcontrol_launch_dependents()"]
_FINISHERS = "min(1024, (rows + 31) // 32 * 32)"


class RowModule(Passes):
    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        reserved = (
            "n rows vec row lane first stride rank arrived columns vectors chunks held turns turn groups steps step "
            "start mine sure begin skew reach whole tail tidx bidx local_row source_row width smem threads "
            "ahead next_row slots roomy staged warps partials moments partial_moments seen count part about centre"
        )
        if approximate(problem.workload)[0]:
            graph = divided_by_rows(graph)
        elif isinstance(pair := in_one_walk(graph), Online):  # between 1 and the row's length: no reciprocal overflows
            graph = divided_by_rows(graph, pair.total)
        super().__init__(problem, graph, config, reserved)

    # --- the whole module ---

    def text(self) -> str:
        kernels = [self._kernel()]
        sentences = (
            "A row stays in registers between its reductions: it is read once and written once. Each thread issues "
            "up to ``loads`` vector loads before it uses the first; where they do not cover its share, it walks the "
            "row in steps and reads it again for every reduction that cannot share a walk."
        )
        if self.totals:
            sentences += (
                " What is folded over all rows is left in a workspace, a value a row, and a second kernel of one "
                "block reduces it. The order of every sum is fixed, so results are the same at every call."
            )
            names = {index: self.reduction_name(index) for index in self.totals}
            kernels.append(finishing_function(self, self.late_outputs, names, "rows"))
        writes = any(self.along(self.views.by_name[name]) for name, *_ in self.row_outputs)
        constants = [
            *["LOAD = load_lasting"] * writes,
            *["FAST = True"] * (self.fast and isinstance(self.pair, Online)),
        ]
        file = "skewed_rows" if self.skewed else "row_reduction"
        return self.bundled(file, NAME, sentences, DOMAINS, self._host(), [constants, *kernels, self._launch()])

    def _host(self) -> list[str]:
        tensors = [(where, i) for where in ("inputs", "outputs") for i in range(len(getattr(self, where)))]
        space = Space(self.graph, tuple(f"workload.{where}[{i}]" for where, i in tensors))
        run = space.product(self.run) if self.broken else "n"
        arguments = f"n, {run}, {skewed(self.graph)}, workload.derived"
        lines = constraints(arguments, f"n = {space.product(self.graph.reduced)}")
        if self.totals:
            lines += [
                "", "", "def workspace(workload, config):", '    """A value for each total and row."""',
                f'    return [("row_values", "f32", ({len(self.totals)}, {space.product(self.outer)}))]',
            ]  # fmt: skip
        return lines

    def _launch(self) -> list[str]:
        more = ["turns"] * self.turning
        sizes = ["rows", "n", "width", "threads_per_row", "rows_per_block", "cluster_n", "loads", *more, *self.sizes]
        arguments = ", ".join([*self.row_tensors, *self._numbers, *sizes])
        workspace = ["row_values"] if self.totals else []
        groups = "(rows + rows_per_block - 1) // rows_per_block"
        return [
            *self.launch_head(*workspace),
            *self.size_and_view_lines(),
            *(_TURNS if self.turning else []),
            f"    row_kernel({arguments}).launch(",
            f"        grid=[{'(groups + turns - 1) // turns' if self.turning else groups} * cluster_n, 1, 1],",
            "        block=[threads_per_row * rows_per_block, 1, 1],",
            "        cluster=[cluster_n, 1, 1] if cutlass.const_expr(cluster_n > 1) else None,",
            "        stream=stream,",
            "    )",
            *(
                finishing_launch(
                    self, self.late_outputs, self.totals, "row_values", ["n", _FINISHERS, "rows"], unroll=8
                )
                if self.totals
                else []
            ),
        ]

    @property
    def _numbers(self) -> list[str]:
        return ["tail"] * self.skewed

    # --- the kernel ---

    def _kernel(self) -> list[str]:
        more = ["turns"] * self.turning
        group = "(bidx // cluster_n * turns + turn)" if self.turning else "bidx // cluster_n"
        constants = ("rows", "n", "vec", "threads_per_row", "rows_per_block", "cluster_n", "loads", *more, *self.sizes)
        row = [
            f"row = {group} * rows_per_block + tidx // threads_per_row",
            "# Threads past the last row work on it too, and store nothing: barriers stay uniform.",
            "source_row = cutlass.min(row, rows - 1)",
            *(_SKEW if self.skewed else []),
            *self.loads(),
            *self.passes(),
            *self.stores(),
        ]
        if self.turning:
            again = ["if cutlass.const_expr(turns > 1):", "    cute.arch.sync_threads()  # before anyone writes again"]
            row = ["for turn in cutlass.range(turns, unroll=1):", *(f"    {line}" for line in [*row, *again])]
        return self.kernel(
            "row_kernel", self.row_tensors, constants, [*self._prologue(), *self.waiting(), *row], self._numbers
        )

    def _prologue(self) -> list[str]:
        lines = [
            "tidx, _, _ = cute.arch.thread_idx()",
            "bidx, _, _ = cute.arch.block_idx()",
            *(_STARTS if self.totals else []),
            "lane = tidx % threads_per_row",
            "stride = threads_per_row * cluster_n  # vectors of a row that are loaded at once",
            "vectors, held, steps, sure = share_of_row(n, vec, stride, loads)",
            "rank = 0  # of this block among those that share its rows",
            "if cutlass.const_expr(cluster_n > 1):",
            "    rank = cute.arch.block_idx_in_cluster()",
            "first = rank * threads_per_row + lane",
            "mine = cute.make_layout((vec, held))",
            "",
            "smem = cutlass.utils.SmemAllocator()",
        ]
        return [*lines, *self.meeting_places(), ""]
