"""What a row kernel does with a row: one walk for each depth of reductions, one that writes."""

from __future__ import annotations

from itertools import groupby

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.cute_text import number
from cutegen_lab.templates.emit.module import CUTE_TYPE
from cutegen_lab.templates.families.kernel_module import COMBINE
from cutegen_lab.templates.families.rows.loading import Loading
from cutegen_lab.templates.families.rows.online import Moments, Online, in_one_walk
from cutegen_lab.templates.frontend.expr import NEUTRAL, Graph, Reduce
from cutegen_lab.templates.frontend.names import variable


class Passes(Loading):
    def __init__(self, problem: Problem, graph: Graph, config: Config, reserved: str) -> None:
        super().__init__(problem, graph, config, reserved)
        depths, late = graph.depths(), graph.late()
        in_order = sorted(self.reductions, key=lambda i: (depths[i], i))
        self.walks = [list(indices) for _, indices in groupby(in_order, key=lambda i: depths[i])]
        self.pair = in_one_walk(graph)
        joined = self.pair.reductions if isinstance(self.pair, Moments) else ()
        self._sent = [i for i in self.reductions if i not in joined]  # to other blocks, one by one
        self.totals = dict(graph.totals())
        named = list(zip(self.outputs, graph.outputs, problem.workload.outputs, strict=True))
        self.late_outputs = [name for name, output, _ in named if late[output.node]]
        self.row_outputs = [row for row in named if row[0] not in self.late_outputs]

    @property
    def row_tensors(self) -> list[str]:
        """The row kernel's parameters."""
        names = [name for name in self.views.by_name if name not in self.late_outputs]
        return [variable("g", name) for name in names] + (["row_values"] if self.totals else [])

    # --- reductions ---

    def meeting_places(self) -> list[str]:
        """Shared memory where the parts of a row meet."""
        lines = [
            "warps = max(threads_per_row // 32, 1)",
            "partials = cute.make_layout((rows_per_block, warps), stride=(warps, 1))",
            *(f"buffer{i} = smem.allocate_tensor(Float32, partials, 16)" for i in range(len(self.reductions))),
        ]
        two = ", 2" if self.turning else ""  # by turns: a block may be one ahead of another
        places = [f"(cluster_n, 1, rows_per_block{two})" for _ in self._sent]
        if isinstance(self.pair, Moments):
            lines.append("partial_moments = cute.make_layout((rows_per_block, warps, 3), stride=(3 * warps, 1, warps))")
            lines.append("moments = smem.allocate_tensor(Float32, partial_moments, 16)")
            places.append(f"(cluster_n, 3, rows_per_block{two})")
        barriers = range(len(places) * (2 if self.turning else 1))
        return [
            *lines,
            "if cutlass.const_expr(cluster_n > 1):",
            *(f"    parts{i} = smem.allocate_tensor(Float32, cute.make_layout({p}), 16)" for i, p in enumerate(places)),
            f"    arrived = smem.allocate_array(cutlass.Int64, num_elems={len(barriers)})",
            "    if tidx == 0:",
            *(f"        cute.arch.mbarrier_init(arrived + {i}, 1)" for i in barriers),
            "    cute.arch.mbarrier_init_fence()",
            "    cute.arch.cluster_arrive_relaxed()",
            "    cute.arch.cluster_wait()",
        ]

    def _place(self, number: int) -> str:
        """Where the blocks of a cluster meet for the ``number``-th time: what is sent, a barrier and its phase."""
        if not self.turning:
            return f"parts{number}, arrived + {number}, 0"
        return f"parts{number}[None, None, None, turn % 2], arrived + ({2 * number} + turn % 2), turn // 2 % 2"

    def passes(self) -> list[str]:
        """A walk for each depth. A pair that can share a walk does, where that saves reading the row again; a mean and
        the squares about it also where blocks would have to wait for each other twice."""
        self.names = {index: self.reduction_name(index) for walk in self.walks for index in walk}
        if self.pair is None:
            return self._all(self.walks)
        before = dict(self.env)
        apart = self._all(self.walks)[:-1]
        held, self.env = self.env, before
        if isinstance(self.pair, Online):
            when, together = "steps == 1", self._online(self.pair)
        else:
            when, together = "steps == 1 and cluster_n == 1", self._moments(self.pair)
        others = [[i for i in walk if i not in self.pair.reductions] for walk in self.walks]
        together += self._all([walk for walk in others if walk])
        self.env = {index: name for index, name in self.env.items() if held.get(index) == name}
        branches = ((f"if cutlass.const_expr({when}):", apart), ("else:", together))
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
        return f"fold({text}, {combine}, {neutral}, start, stride, {self.bounds}, sure)"

    def _met(self, index: int, value: str) -> list[str]:
        """Every thread of the row gets the reduction of all ``value``."""
        name, (combine, _) = self.names[index], self._operation(index)
        buffer = f"buffer{self.reductions.index(index)}"
        lines = [f"{name} = row_reduce({value}, {buffer}, {combine}, threads_per_row)"]
        if index in self._sent:
            place = self._place(self._sent.index(index))
            lines += [
                "if cutlass.const_expr(cluster_n > 1):",
                f"    {name} = cluster_reduce(",
                f"        {name}, {place}, rank, {combine}, threads_per_row, cluster_n",
                "    )",
            ]
        return lines

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

    def _moments(self, pair: Moments) -> list[str]:
        """Each step's values are summed, and squared about their own mean; then the row's parts are put together."""
        total, squares = self.names[pair.total], self.names[pair.squares]
        env: dict[int, str] = {}
        before, body = self._walked([self.graph.nodes[pair.total].args[0]], env)
        body += [
            f"count = inside(start, stride, {self.bounds}, mine, sure)",
            f"part = {self._folded(pair.total, env)}",
            "centre = centre_of(count, part)",
        ]
        env[pair.mean] = "centre"
        body += self.writer.assignments([self.graph.nodes[pair.squares].args[0]], env, {})
        found = f"seen, {total}, {squares}"
        self.env |= {pair.total: total, pair.squares: squares}
        return [
            *before,
            *(f"{name} = Float32(0.0)" for name in ("seen", total, squares)),
            "for step in cutlass.range(steps, unroll=1):",
            *(f"    {line}" for line in body),
            f"    about = {self._folded(pair.squares, env)}",
            "    if cutlass.const_expr(steps == 1):",
            f"        {found} = count, part, about",
            "    else:",
            f"        {found} = together([seen, count], [{total}, part], [{squares}, about])",
            f"{found} = row_moments({found}, moments, sure == held, threads_per_row)",
            "if cutlass.const_expr(cluster_n > 1):",
            f"    {found} = cluster_moments(",
            f"        {found}, {self._place(len(self._sent))}, rank, sure == held, threads_per_row, cluster_n",
            "    )",
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
            where = "begin, start, stride, sure, skew, n" if self.skewed else "row, start, stride, sure"
            body += [f"    put({variable('r', name)}, {variable('g', name)}, {where})" for name, _ in wide]
            lines += [*before, "for step in cutlass.range(steps, unroll=1):", *(f"    {line}" for line in body)]
        folded = [total.args[0] for total in self.totals.values()]
        if single or folded:
            lines += self.writer.assignments([*(o.node for _, o, _ in single), *folded], self.env, self.local)
            lines.append("if row < rows and first == 0:")
            for name, output, spec in single:
                lines.append(f"    {variable('g', name)}[row] = {CUTE_TYPE[spec.dtype]}({self._text(output.node)})")
            lines += [f"    row_values[{i}, row] = Float32({self._text(node)})" for i, node in enumerate(folded)]
        return lines
