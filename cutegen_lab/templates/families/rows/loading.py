"""What a row kernel reads of a row, and where it waits: in registers, in shared memory, or in memory for every walk."""

from __future__ import annotations

import math
from functools import cached_property

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.families.rows.row_kernel import RowKernel
from cutegen_lab.templates.families.rows.skewed import skewed
from cutegen_lab.templates.frontend.expr import Graph, Index, Reduce
from cutegen_lab.templates.frontend.names import variable

_ROOM = 64  # values in registers from which on fewer threads would fit a multiprocessor


class Loading(RowKernel):
    def __init__(self, problem: Problem, graph: Graph, config: Config, reserved: str) -> None:
        super().__init__(problem, graph, config, reserved)
        self.reductions = [i for i, node in enumerate(graph.nodes) if isinstance(node, Reduce)]
        self.env: dict[int, str] = {}  # values with one a row, and their names
        self.local: dict[int, str] = {}
        for dim in sorted({place.dim for _, place in graph.places()}):
            finer = [d for d in self.outer if d > dim]
            self.sizes |= {f"within_{dim}": self.space.product(finer), f"count_{dim}": self.space.size(dim)}
        vec, n = int(config["vec"]), math.prod(graph.space[d] for d in graph.reduced)
        self.skewed = n % vec > 0 and skewed(graph)

    @cached_property
    def _wide(self) -> list[str]:
        """Inputs with a value for each position of the row."""
        return [name for name in self.views.loaded if self.along(self.views.by_name[name])]

    @cached_property
    def _shared(self) -> list[str]:
        """Those of them that all rows share and no reduction reads, a norm's weights."""
        waited = self.writer.pending([self.graph.nodes[i].args[0] for i in self.reductions], {})
        early = {view.name for index, view in self.views.of_load.items() if index in waited}
        views = self.views.by_name
        whole = [n for n in self._wide if n not in early and views[n].contiguous(self.graph.reduced)]
        return [n for n in whole if all(views[n].dims[d] is None for d in self.outer)]

    @property
    def shares(self) -> bool:
        return bool(self._shared)

    @property
    def turning(self) -> bool:
        """Does a block take several rows in turn? Where what rows share is more than a row, reading it again for each
        would cost more than the row."""
        return len(self._shared) > 1

    def waiting(self) -> list[str]:
        """Registers for the row, and what rows share. That is asked for before a row is, since the compiler would read
        it piece by piece afterwards, one wait after another; it waits in registers where there is room, else each
        thread copies its own into shared memory."""
        lines = []
        registers = [(variable("r", name), name) for name in self._wide]
        registers += [(variable("n", name), name) for name in self._ahead]
        for register, name in registers:
            lines.append(f"{register} = cute.make_rmem_tensor(mine, {variable('g', name)}.element_type)")
        lines += ["if cutlass.const_expr(sure < held):", *(f"    {register}.fill(0.0)" for register, _ in registers)]
        if not self._shared:
            return lines
        tensors = ", ".join(variable("g", name) for name in self._shared)
        places = [(variable("g", name), variable("s", name)) for name in self._shared]
        return [
            *lines,
            "threads = threads_per_row * rows_per_block",
            f"roomy = steps == 1 and {1 + len(self._shared)} * vec * held < {_ROOM}",
            f"staged = steps == 1 and not roomy and stageable(({tensors},), held * threads)",
            "if cutlass.const_expr(roomy):",
            *(f"    {self._fetch(name, 'first', '0')}" for name in self._shared),
            "if cutlass.const_expr(staged):",
            "    slots = cute.make_layout((vec, held, threads), stride=(1, vec * threads, vec))",
            *(f"    {s} = smem.allocate_tensor({g}.element_type, slots, 16)[None, None, tidx]" for g, s in places),
            *(f"    stage({g}, {s}, first, stride, sure)" for g, s in places),
            *self._begun(),
        ]

    def _begun(self) -> list[str]:
        """The first of the rows that are asked for ahead."""
        if not self._ahead:
            return []
        first = self._next("bidx // cluster_n * turns * rows_per_block + tidx // threads_per_row")
        return ["ahead = staged and turns > 1", "if cutlass.const_expr(ahead):", *(f"    {line}" for line in first)]

    @cached_property
    def _early(self) -> list[str]:
        """What differs from row to row."""
        return [name for name in self._wide if name not in self._shared]

    @property
    def _ahead(self) -> list[str]:
        """What is asked for a row ahead, while the one before it is worked on: registers have room for that where what
        rows share is in shared memory."""
        return self._early if self.turning and not self.skewed else []

    def _next(self, row: str) -> list[str]:
        return [
            f"next_row = cutlass.min({row}, rows - 1)",
            *(
                f"fetch({variable('g', name)}, {variable('n', name)}, next_row, first, stride, sure)"
                for name in self._ahead
            ),
        ]

    def loads(self) -> list[str]:
        """A row's only reading, where one step covers it. Values with one a row are read here."""
        fetches = [self._fetch(name, "first") for name in self._early]
        lines = ["if cutlass.const_expr(steps == 1):", *(f"    {fetch}" for fetch in fetches)]
        if self._ahead:
            turned = [f"{variable('r', name)}.store({variable('n', name)}.load())" for name in self._ahead]
            again = self._next("row + rows_per_block")
            lines = [
                "if cutlass.const_expr(ahead):",
                *(f"    {line}" for line in turned),
                "    if turn + 1 < turns:",
                *(f"        {line}" for line in again),
                "elif cutlass.const_expr(steps == 1):",
                *(f"    {fetch}" for fetch in fetches),
            ]
        for index, view in self.views.of_load.items():
            name = view.name
            if name not in self._wide:
                line = f"{name} = Float32({variable('g', name)}[source_row])"
                lines += [line] if line not in lines else []
                self.env[index] = name
        for index, place in self.graph.places():
            name = self.env[index] = self.writer.name("place")
            lines.append(f"{name} = Float32(source_row // within_{place.dim} % count_{place.dim})")
        for index, view in self.views.of_pick.items():
            at = self.graph.nodes[index].args[0]
            lines += self.writer.assignments([at], self.env, self.local)
            name = self.env[index] = self.writer.name("picked")
            lines.append(f"{name} = pick({variable('g', view.name)}, {self._text(at)}, source_row)")
        return [*lines, ""]

    def _fetch(self, name: str, start: str, row: str = "source_row") -> str:
        where = f"begin, {start}, stride, sure, tail" if self.skewed else f"{row}, {start}, stride, sure"
        return f"fetch({variable('g', name)}, {variable('r', name)}, {where})"

    @property
    def bounds(self) -> str:
        """What device functions go by to tell a row's values from others."""
        return "(skew, n)" if self.skewed else "vectors"

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
        if early:
            body += ["if cutlass.const_expr(steps > 1):", *(f"    {self._fetch(name, 'start')}" for name in early)]
        if shared := [name for name in names if name in self._shared]:
            body += ["if cutlass.const_expr(staged):", "    cute.arch.cp_async_wait_group(0)"]
            places = [(variable("s", name), variable("r", name)) for name in shared]
            body += [f"    unstage({s}, {r}, start, stride, vectors, sure)" for s, r in places]
            body += ["if cutlass.const_expr(not (roomy or staged)):"]
            body += [f"    {self._fetch(name, 'start', '0')}" for name in shared]
        indexed = any(isinstance(self.graph.nodes[i], Index) for i in pending)
        if indexed:
            body.append(f"columns = positions(start, stride, mine){' - Float32(skew)' if self.skewed else ''}")
        for index, name in needed:
            env[index] = name
            line = f"{name} = {variable('r', name)}.load().to(Float32)"
            if line not in body:
                body.append(line)
        return before, body + self.writer.assignments(roots, env, self.local)
