"""What a row kernel does with a row: its loads, one walk for each depth of reductions, one that writes."""

from __future__ import annotations

from functools import cached_property
from itertools import groupby

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.cute_text import number
from cutegen_lab.templates.expr import NEUTRAL, Graph, Index, Reduce
from cutegen_lab.templates.families.kernel_module import COMBINE
from cutegen_lab.templates.families.rows.online import Online, online
from cutegen_lab.templates.families.rows.row_kernel import RowKernel
from cutegen_lab.templates.module import CUTE_TYPE, variable


class Passes(RowKernel):
    def __init__(self, problem: Problem, graph: Graph, config: Config, reserved: str) -> None:
        super().__init__(problem, graph, config, reserved)
        depths, late = graph.depths(), graph.late()
        self.reductions = [i for i, node in enumerate(graph.nodes) if isinstance(node, Reduce)]
        in_order = sorted(self.reductions, key=lambda i: (depths[i], i))
        self.walks = [list(indices) for _, indices in groupby(in_order, key=lambda i: depths[i])]
        self.online = online(graph)
        self.totals = dict(graph.totals())
        named = list(zip(self.outputs, graph.outputs, problem.workload.outputs, strict=True))
        self.late_outputs = [name for name, output, _ in named if late[output.node]]
        self.row_outputs = [row for row in named if row[0] not in self.late_outputs]
        self.env: dict[int, str] = {}  # values with one a row, and their names
        self.local: dict[int, str] = {}

    @property
    def row_tensors(self) -> list[str]:
        """The row kernel's parameters."""
        names = [name for name in self.views.by_name if name not in self.late_outputs]
        return [variable("g", name) for name in names] + (["row_values"] if self.totals else [])

    @cached_property
    def _wide(self) -> list[str]:
        """Inputs with a value for each position of the row."""
        return [name for name in self.views.loaded if self.along(self.views.by_name[name])]

    @cached_property
    def _shared(self) -> list[str]:
        """Those of them that all rows share and no reduction reads, a norm's weights. A block alone with its rows reads
        them after the reductions: from near by, and without a register before."""
        waited = self.writer.pending([self.graph.nodes[i].args[0] for i in self.reductions], {})
        early = {view.name for index, view in self.views.of_load.items() if index in waited}
        views = self.views.by_name
        return [n for n in self._wide if n not in early and all(views[n].dims[d] is None for d in self.outer)]

    def loads(self) -> list[str]:
        """Registers for the row; where one step covers it, its only reading. Values with one a row are read here."""
        lines = []
        for name in self._wide:
            lines.append(f"{variable('r', name)} = cute.make_rmem_tensor(mine, {variable('g', name)}.element_type)")
        lines += [
            "if cutlass.const_expr(sure < held):",
            *(f"    {variable('r', name)}.fill(0.0)" for name in self._wide),
        ]
        early = [name for name in self._wide if name not in self._shared]
        lines += ["if cutlass.const_expr(steps == 1):", *(f"    {self._fetch(name, 'first')}" for name in early)]
        if self._shared:
            lines.append(
                "if cutlass.const_expr(steps == 1 and cluster_n > 1):  # whose blocks wait for each other anyway"
            )
            lines += [f"    {self._fetch(name, 'first')}" for name in self._shared]
        for index, view in self.views.of_load.items():
            name = view.name
            if name not in self._wide:
                line = f"{name} = Float32({variable('g', name)}[source_row])"
                lines += [line] if line not in lines else []
                self.env[index] = name
        for index, view in self.views.of_pick.items():
            at = self.graph.nodes[index].args[0]
            lines += self.writer.assignments([at], self.env, self.local)
            name = self.env[index] = self.writer.name("picked")
            lines.append(f"{name} = pick({variable('g', view.name)}, {self._text(at)}, source_row)")
        return [*lines, ""]

    def _fetch(self, name: str, start: str) -> str:
        return f"fetch({variable('g', name)}, {variable('r', name)}, source_row, {start}, stride, sure)"

    def _text(self, index: int, env: dict[int, str] | None = None) -> str:
        return self.writer.expression(index, self.env if env is None else env)[0]

    def _walked(self, roots: list[int], env: dict[int, str]) -> tuple[list[str], list[str]]:
        """(lines before the walk, first lines of its body) after which ``roots`` can be written from ``env``."""
        pending = self.writer.pending(roots, self.env)
        fixed = [i for i in pending if not self.graph.varies(i)]
        before = self.writer.assignments(fixed, self.env, self.local)
        env.update(self.env)
        needed = [(i, view.name) for i, view in self.views.of_load.items() if i in pending and i not in self.env]
        names = list(dict.fromkeys(name for _, name in needed))
        body = ["start = first + step * (stride * held)"]
        early = [name for name in names if name not in self._shared]
        for when, some in (
            ("steps > 1", early),
            ("steps > 1 or cluster_n == 1", [n for n in names if n in self._shared]),
        ):
            if some:
                body += [f"if cutlass.const_expr({when}):", *(f"    {self._fetch(name, 'start')}" for name in some)]
        indexed = any(isinstance(self.graph.nodes[i], Index) for i in pending)
        if indexed:
            body.append("columns = positions(start, stride, mine)")
        for index, name in needed:
            env[index] = name
            line = f"{name} = {variable('r', name)}.load().to(Float32)"
            if line not in body:
                body.append(line)
        return before, body + self.writer.assignments(roots, env, self.local)

    # --- reductions ---

    def passes(self) -> list[str]:
        """A walk for each depth. Where the row is walked in steps, a maximum and the sum of exponentials that waits for
        it share one."""
        self.names = {index: self.reduction_name(index) for walk in self.walks for index in walk}
        if self.online is None:
            return self._all(self.walks)
        top, total = self.online.top, self.online.total
        others = [[i for i in walk if i not in (top, total)] for walk in self.walks]
        before = dict(self.env)
        resident = self._all(self.walks)[:-1]
        held, self.env = self.env, before
        streamed = [*self._online(self.online), *self._all([walk for walk in others if walk])]
        self.env = {index: name for index, name in self.env.items() if held.get(index) == name}
        branches = (("if cutlass.const_expr(steps == 1):", resident), ("else:", streamed))
        lines = [line for head, body in branches for line in (head, *(f"    {line}" if line else "" for line in body))]
        return [*lines, ""]

    def _all(self, walks: list[list[int]]) -> list[str]:
        return [line for walk in walks for line in (*self._walk(walk), "")]

    def _walk(self, indices: list[int]) -> list[str]:
        env: dict[int, str] = {}
        before, body = self._walked([self.graph.nodes[i].args[0] for i in indices], env)
        lines = list(before)
        for index in indices:
            combine, neutral = self._operation(index)
            name = self.names[index]
            lines.append(f"{name} = Float32({neutral})")
            body.append(f"{name} = {combine}({name}, {self._folded(index, env)})")
        lines += ["for step in cutlass.range(steps, unroll=1):", *(f"    {line}" for line in body)]
        for index in indices:
            self.env[index] = self.names[index]
            lines += self._met(index, self.names[index])
        return lines

    def _operation(self, index: int) -> tuple[str, str]:
        """(function of two scalars, what changes nothing in it)."""
        node = self.graph.nodes[index]
        assert isinstance(node, Reduce)
        return COMBINE[node.op], number(NEUTRAL[node.op])

    def _folded(self, index: int, env: dict[int, str]) -> str:
        """Text of the reduction of a thread's values of one step."""
        arg, (combine, neutral) = self.graph.nodes[index].args[0], self._operation(index)
        text = self._text(arg, env)
        if not self.graph.varies(arg):
            text = f"cute.full_like(cute.make_rmem_tensor(mine, Float32).load(), {text})"
        return f"fold({text}, {combine}, {neutral}, start, stride, vectors, sure)"

    def _met(self, index: int, value: str) -> list[str]:
        """Every thread of the row gets the reduction of all ``value``."""
        number_, name, (combine, neutral) = self.reductions.index(index), self.names[index], self._operation(index)
        return [
            f"{name} = row_reduce({value}, buffer{number_}, {combine}, {neutral}, threads_per_row)",
            "if cutlass.const_expr(cluster_n > 1):",
            f"    {name} = cluster_reduce(",
            f"        {name}, parts{number_}, arrived + {number_}, rank, {combine}, threads_per_row, cluster_n",
            "    )",
        ]

    def _online(self, pair: Online) -> list[str]:
        """Milakov & Gimelshein, Online normalizer calculation for softmax, 2018, algorithm 3: what was summed is
        rescaled whenever the maximum grows; threads' sums likewise when they meet."""
        top, total = self.names[pair.top], self.names[pair.total]
        env: dict[int, str] = {}
        before, body = self._walked([self.graph.nodes[pair.top].args[0]], env)
        body.append(f"grown = larger({top}, {self._folded(pair.top, env)})")
        shift = "finite(grown)" if pair.shift == pair.top else self._text(pair.shift, {**env, pair.top: "grown"})
        body.append(f"shift = {shift}")
        env[pair.shift] = "shift"
        body += self.writer.assignments([self.graph.nodes[pair.total].args[0]], env, {})
        body += [
            f"{total} = {total} * rescale({top}, grown) + {self._folded(pair.total, env)}",
            f"{top} = grown",
        ]
        self.env |= {pair.top: top, pair.total: total}
        return [
            *before,
            f"{top} = Float32(-Float32.inf)",
            f"{total} = Float32(0.0)",
            "for step in cutlass.range(steps, unroll=1):",
            *(f"    {line}" for line in body),
            f"own = {top}",
            *self._met(pair.top, "own"),
            *self._met(pair.total, f"{total} * rescale(own, {top})"),
        ]

    # --- results ---

    def stores(self) -> list[str]:
        wide = [(name, output.node) for name, output, _ in self.row_outputs if self.along(self.views.by_name[name])]
        single = [row for row in self.row_outputs if not self.along(self.views.by_name[row[0]])]
        lines: list[str] = []
        if wide:
            env: dict[int, str] = {}
            before, body = self._walked([node for _, node in wide], env)
            for name, node in wide:
                text = self._text(node, env)
                register, target = variable("r", name), variable("g", name)
                if not self.graph.varies(node):
                    text = f"cute.full_like({register}.load(), {text}, Float32)"
                body.append(f"{register} = cute.make_rmem_tensor(mine, {target}.element_type)")
                body.append(f"{register}.store(({text}).to({target}.element_type))")
            body.append("if row < rows:")
            body += [
                f"    put({variable('r', name)}, {variable('g', name)}, row, start, stride, sure)" for name, _ in wide
            ]
            lines += [*before, "for step in cutlass.range(steps, unroll=1):", *(f"    {line}" for line in body)]
        folded = [total.args[0] for total in self.totals.values()]
        if single or folded:
            lines += self.writer.assignments([*(o.node for _, o, _ in single), *folded], self.env, self.local)
            lines.append("if row < rows and first == 0:")
            for name, output, spec in single:
                lines.append(f"    {variable('g', name)}[row] = {CUTE_TYPE[spec.dtype]}({self._text(output.node)})")
            lines += [f"    row_values[{i}, row] = Float32({self._text(node)})" for i, node in enumerate(folded)]
        return lines
