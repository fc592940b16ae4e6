"""Writes the module of a row reduction."""

from __future__ import annotations

from collections.abc import Iterable

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.cute_text import divided_by_rows, number
from cutegen_lab.templates.emit.module import Space, approximate, call, constraints, text_of_tuple
from cutegen_lab.templates.families.finish import finishing_function, finishing_launch
from cutegen_lab.templates.families.kernel_module import COMBINE
from cutegen_lab.templates.families.rows.config import DOMAINS, NAME
from cutegen_lab.templates.families.rows.functions import Function, RowFunctions
from cutegen_lab.templates.families.rows.online import Online, in_one_walk
from cutegen_lab.templates.families.rows.skewed import skewed
from cutegen_lab.templates.frontend.expr import NEUTRAL, Graph, Reduce
from cutegen_lab.templates.frontend.names import variable

_FINISHERS = "min(1024, (rows + 31) // 32 * 32)"


class RowModule(RowFunctions):
    """Writes the module of a row reduction: ``rows`` rows of ``n`` elements, fp32 arithmetic, a generated function for
    each pass. A second kernel of one block computes full reductions from the workspace ``row_values``, f32 (full
    reductions, rows)."""

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        reserved = "n rows row columns pick choose"
        if approximate(problem.workload)[0]:
            graph = divided_by_rows(graph)
        elif isinstance(pair := in_one_walk(graph), Online):  # the total is in [1, n]: its reciprocal does not overflow
            graph = divided_by_rows(graph, pair.total)
        super().__init__(problem, graph, config, reserved)

    # --- the whole module ---

    def text(self) -> str:
        sentences = (
            "A row stays in registers between its reductions: it is read once and written once. Each thread issues "
            "up to ``loads`` vector loads before it uses the first. If these do not cover its share, it reads the row "
            "in steps, and again for every reduction that cannot share a pass."
        )
        kernels = list[list[str]]()
        if self.totals:
            sentences += (
                " For reductions over all rows, each row stores one value in a workspace, which a second kernel of one "
                "block reduces. The order of every sum is fixed, so results are the same at every call."
            )
            names = {index: self.reduction_name(index) for index in self.totals}
            kernels.append(finishing_function(self, self.late_outputs, names, "rows"))
        online = self.pair if isinstance(self.pair, Online) else None
        constants = [
            *["LOAD = load_lasting"] * bool(self.wide_outputs),
            *["FAST = True"] * (self.fast and online is not None),
            *["SHIFT = zero_if_infinite"] * (online is not None and online.shift != online.top),
        ]
        functions = [lines for lines in (self.per_row, *(function.text for function in self.functions)) if lines]
        file = "skewed_rows" if self.skewed else "row_reduction"
        generated = [constants, *functions, *kernels, self._launch()]
        return self.bundled(file, NAME, sentences, DOMAINS, self._host(), generated)

    def _host(self) -> list[str]:
        tensors = [(where, i) for where in ("inputs", "outputs") for i in range(len(getattr(self, where)))]
        space = Space(self.graph, tuple(f"workload.{where}[{i}]" for where, i in tensors))
        run = space.product(self.run) if self.broken else "n"
        arguments = f"n, {run}, {skewed(self.graph)}, workload.derived"
        lines = constraints(arguments, f"n = {space.product(self.graph.reduced)}")
        if self.totals:
            lines += [
                "", "", "def workspace(workload, config):", '    """Workspace: per full reduction, a value per row."""',
                f'    return [("row_values", "f32", ({len(self.totals)}, {space.product(self.outer)}))]',
            ]  # fmt: skip
        return lines

    # --- the launch ---

    def _launch(self) -> list[str]:
        paired = self._paired()
        totals = "(row_values,)" if self.totals else "()"
        online, moments = (paired, "None") if isinstance(self.pair, Online) else ("None", paired)
        functions = [
            "per_row" if self.per_row else "None",
            text_of_tuple(self._called(self.finish)) if self.finish is not None else "None",
            self._of_values(self.row_results) if self.row_results is not None else "None",
            "skewed_at" if self.skewed else "None",
        ]
        given = [
            text_of_tuple(map(_tensors, (self.own, self.shared, self.singles))),
            text_of_tuple([*map(_tensors, (self.wide_outputs, self.row_outputs)), totals]),
            "dynamic_tail(tail)" if self.skewed else "()",
            f"(ops, walks, {online}, {moments}, {self._walks(self.rest)})",
            text_of_tuple(functions),
            f"(rows, n, width, {text_of_tuple(self.taken_sizes)})",
            "(threads_per_row, rows_per_block, cluster_n, loads)",
            "stream",
        ]
        return [
            *self.launch_head(*["row_values"] * bool(self.totals)),
            *self.size_and_view_lines(),
            *self._reductions(),
            *call("reduce_rows", given, 4),
            *(
                finishing_launch(
                    self, self.late_outputs, self.totals, "row_values", ["n", _FINISHERS, "rows"], unroll=8
                )
                if self.totals
                else []
            ),
        ]

    def _reductions(self) -> list[str]:
        """Lines of ``launch``: the reductions ``ops`` and the passes ``walks`` that compute them."""
        ops = [f"({COMBINE[op]}, {number(NEUTRAL[op])})" for op in map(self._op, self.reductions)]
        return [f"    ops = {text_of_tuple(ops)}", f"    walks = {self._walks(self.walks)}"]

    def _op(self, index: int) -> str:
        node = self.graph.nodes[index]
        assert isinstance(node, Reduce)
        return node.op

    def _paired(self) -> str:
        """Text of the pass that two reductions share."""
        if self.pair is None:
            return "None"
        first = self.terms[self.pair.reductions[:1]]
        return text_of_tuple([*self._called(first), self._numbers(self.pair.reductions)])

    def _walks(self, walks: Iterable[tuple[int, ...]]) -> str:
        return text_of_tuple(text_of_tuple([*self._called(self.terms[walk]), self._numbers(walk)]) for walk in walks)

    def _numbers(self, reductions: Iterable[int]) -> str:
        return text_of_tuple(str(self.reductions.index(index)) for index in reductions)

    def _of_values(self, function: Function) -> str:
        """Text of the name of a function without vectors, and of its arguments."""
        name, _, _, *taken = self._called(function)
        return text_of_tuple([name, *taken])

    def _called(self, function: Function) -> list[str]:
        """Texts of a function's name and of its arguments (:meth:`taken`)."""
        return [function.name, *self.taken(function)]


def _tensors(names: Iterable[str]) -> str:
    return text_of_tuple(variable("g", name) for name in names)
