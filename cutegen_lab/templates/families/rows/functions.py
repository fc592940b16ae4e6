"""The generated functions that the row kernel calls, and the vectors and values that each takes."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.syntax import parse
from cutegen_lab.templates.emit.module import signature, text_of_tuple
from cutegen_lab.templates.families.rows.online import Moments, in_one_walk
from cutegen_lab.templates.families.rows.row_kernel import RowKernel
from cutegen_lab.templates.families.rows.skewed import skewed
from cutegen_lab.templates.frontend.expr import Gather, Graph, Reduce
from cutegen_lab.templates.frontend.names import variable


@dataclass(frozen=True)
class Function:
    """A generated function. Parameters, in order: ``vectors``, ``shared`` (vectors that all rows share), ``values``,
    and the results of ``before``, which takes only values."""

    name: str
    lines: tuple[str, ...]
    vectors: tuple[str, ...]
    shared: tuple[str, ...]
    values: tuple[str, ...]
    returned: tuple[str, ...]
    before: Function | None = None

    @property
    def text(self) -> list[str]:
        computed = self.before.returned if self.before is not None else ()
        parameters = [*self.vectors, *self.shared, *self.values, *computed]
        return written(self.name, parameters, [*self.lines, f"return {text_of_tuple(self.returned)}"])


class RowFunctions(RowKernel):
    """Writes the functions of a row reduction. ``reductions``: those of the graph in the order of the kernel's ``ops``;
    a :class:`Moments` pair is last, since blocks exchange both together."""

    def __init__(self, problem: Problem, graph: Graph, config: Config, reserved: str) -> None:
        super().__init__(problem, graph, config, reserved)
        for dim in sorted({iota.dim for _, iota in graph.iotas()}):
            finer = [d for d in self.outer if d > dim]
            self.sizes |= {f"within_{dim}": self.space.product(finer), f"count_{dim}": self.space.size(dim)}
        vec, n = int(config["vec"]), math.prod(graph.space[d] for d in graph.reduced)
        self.skewed = n % vec > 0 and skewed(graph)
        self.pair = in_one_walk(graph)
        joined = self.pair.reductions if isinstance(self.pair, Moments) else ()
        reductions = [i for i, node in enumerate(graph.nodes) if isinstance(node, Reduce)]
        self.reductions = [*(i for i in reductions if i not in joined), *joined]
        depths, late = graph.depths(), graph.late()
        in_order = sorted(self.reductions, key=lambda i: (depths[i], i))
        self.walks = [tuple(indices) for _, indices in groupby(in_order, key=lambda i: depths[i])]
        self.names = {index: self.reduction_name(index) for walk in self.walks for index in walk}
        self.totals = dict(graph.full_reductions())
        named = list(zip(self.outputs, graph.outputs, strict=True))
        self.late_outputs = [name for name, output in named if late[output.node]]
        row_outputs = [(name, output.node) for name, output in named if not late[output.node]]
        self.wide_outputs = {name: node for name, node in row_outputs if self.along(self.views.by_name[name])}
        self.row_outputs = {name: node for name, node in row_outputs if name not in self.wide_outputs}
        self._local: dict[int, str] = {}  # names of values that several functions compute, by node
        self._of_row = self._row_values()

    # --- loads ---

    @cached_property
    def _wide(self) -> list[str]:
        """Inputs with one value for each element of the row."""
        return [name for name in self.views.loaded if self.along(self.views.by_name[name])]

    @cached_property
    def shared(self) -> list[str]:
        """The inputs of ``_wide`` that all rows share and no reduction reads, such as a norm's weights."""
        if self.skewed:  # then vectors are aligned in memory, and begin at another element in each row
            return []
        waited = self.writer.pending([self.graph.nodes[i].args[0] for i in self.reductions], {})
        early = {view.name for index, view in self.views.of_load.items() if index in waited}
        views = self.views.by_name
        whole = [n for n in self._wide if n not in early and views[n].contiguous(self.graph.reduced)]
        return [n for n in whole if all(views[n].dims[d] is None for d in self.outer)]

    @cached_property
    def own(self) -> list[str]:
        """The inputs of ``_wide`` that differ between rows."""
        return [name for name in self._wide if name not in self.shared]

    @cached_property
    def singles(self) -> list[str]:
        """Views with one value per row, and tables of gathers."""
        picked = dict.fromkeys(view.name for view in self.views.of_gather.values())
        return [*(name for name in self.views.loaded if name not in self._wide), *picked]

    def _row_values(self) -> dict[int, str]:
        """Names of values that are read once per row, by node. Sets ``_reads``, the lines that read them."""
        named = {index: view.name for index, view in self.views.of_load.items() if view.name not in self._wide}
        lines = [f"{name} = Float32({variable('g', name)}[row])" for name in dict.fromkeys(named.values())]
        for index, iota in self.graph.iotas():
            named[index] = self.writer.name("position")
            lines.append(f"{named[index]} = Float32(row // within_{iota.dim} % count_{iota.dim})")
        env = dict(named)
        for index, view in self.views.of_gather.items():
            gather = self.graph.nodes[index]
            assert isinstance(gather, Gather)
            (at,), wraps = gather.args, ", wraps=True" if gather.wraps else ""
            lines += self.writer.assignments([at], env, self._local)
            text, _ = self.writer.expression(at, env)
            named[index] = env[index] = self.writer.name("gathered")
            lines.append(f"{named[index]} = pick({variable('g', view.name)}, {text}, row{wraps})")
        self._reads = lines
        return named

    # --- generated functions ---

    def _function(self, name: str, roots: Sequence[int]) -> Function:
        """A function that computes ``roots``. Its ``before`` computes the values that are the same in all steps of a
        pass."""
        env = self.names | self._of_row
        needed = self.writer.pending(roots, env)
        fixed = [i for i in needed if not self.graph.varies(i)]
        steady = self.writer.assignments(fixed if any(map(self.graph.varies, roots)) else roots, env, self._local)
        loads = {i: view.name for i, view in self.views.of_load.items() if i in needed and i not in env}
        env |= loads
        lines = self.writer.assignments(roots, env, self._local)
        results = [self.writer.expression(root, env)[0] for root in roots]
        used = names_in([*lines, *results])
        vectors = [*dict.fromkeys(n for n in loads.values() if n in self.own), *["columns"] * ("columns" in used)]
        shared = [n for n in self.shared if n in loads.values()]
        computed = [n for n in dict.fromkeys(bound_in(steady)) if n in used]
        before = Function(f"before_{name}", tuple(steady), (), (), self._taken(names_in(steady)), tuple(computed))
        return Function(
            name, tuple(lines), tuple(vectors), tuple(shared), self._taken(used), tuple(results),
            before if steady else None,
        )  # fmt: skip

    def _taken(self, used: Collection[str]) -> tuple[str, ...]:
        names = (*self.names.values(), *self._sizes, *dict.fromkeys(self._of_row.values()))
        return tuple(name for name in names if name in used)

    @property
    def _sizes(self) -> tuple[str, ...]:
        return "n", "rows", *self.sizes

    @cached_property
    def terms(self) -> dict[tuple[int, ...], Function]:
        """For the reductions of each pass, the function that computes their operands."""
        walks = dict.fromkeys([*self.walks, *self.rest])
        if self.pair is not None:
            walks |= {self.pair.reductions[:1]: None}
        return {
            walk: self._function(f"terms_{number}", [self.graph.nodes[i].args[0] for i in walk])
            for number, walk in enumerate(walks, 1)
        }

    @cached_property
    def rest(self) -> list[tuple[int, ...]]:
        """The passes without the pair that shares one; empty if there is no pair."""
        paired = self.pair.reductions if self.pair is not None else ()
        walks = [tuple(i for i in walk if i not in paired) for walk in self.walks]
        return [walk for walk in walks if walk] if paired else []

    @cached_property
    def finish(self) -> Function | None:
        """The function that computes the outputs that vary along the row."""
        return self._function("finish", list(self.wide_outputs.values())) if self.wide_outputs else None

    @cached_property
    def row_results(self) -> Function | None:
        """The function that computes the values that are written once per row: outputs, then operands of full
        reductions."""
        roots = [*self.row_outputs.values(), *(total.args[0] for total in self.totals.values())]
        return self._function("row_results", roots) if roots else None

    @cached_property
    def functions(self) -> list[Function]:
        """All functions; a function's ``before`` is listed in front of it."""
        found = [*self.terms.values(), *filter(None, (self.finish, self.row_results))]
        return [each for function in found for each in (function.before, function) if each is not None]

    @cached_property
    def taken_sizes(self) -> list[str]:
        """Sizes that functions take as values."""
        used = names_in(self._reads).union(*(function.values for function in self.functions))
        return [name for name in self._sizes if name in used]

    @cached_property
    def row_values(self) -> list[str]:
        """Values that are read once per row and that functions take."""
        used = set[str]().union(*(function.values for function in self.functions))
        return [name for name in dict.fromkeys(self._of_row.values()) if name in used]

    @property
    def per_row(self) -> list[str]:
        """Lines of the function that reads the values of ``row_values``; empty if there are none."""
        if not self.row_values:
            return []
        parameters = ["row", *(variable("g", name) for name in self.singles), *self.taken_sizes]
        return written("per_row", parameters, [*self._reads, f"return {text_of_tuple(self.row_values)}"])

    def taken(self, function: Function) -> list[str]:
        """Texts: indices of its vectors, whether it takes ``columns`` (0 or 1), indices of its values, its
        ``before``."""
        vectors = [str(self.own.index(name)) for name in function.vectors if name in self.own]
        indexed = str(int(len(vectors) < len(function.vectors)))
        before = "()"
        if function.before is not None:
            before = f"(({function.before.name}, {self._numbered(function.before.values)}),)"
        return [text_of_tuple(vectors), indexed, self._numbered(function.values), before]

    def _numbered(self, values: Iterable[str]) -> str:
        return text_of_tuple(str(self._values.index(name)) for name in values)

    @cached_property
    def _values(self) -> list[str]:
        """Names of the kernel's ``values``."""
        return [*(self.names[i] for i in self.reductions), *self.taken_sizes, *self.row_values]


def written(name: str, parameters: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Text of a function, decorated as compiled code if it has a conditional expression."""
    chooses = any(isinstance(node, ast.IfExp) for node in ast.walk(parse("\n".join(lines))))
    return [*["@cute.jit"] * chooses, *signature(name, parameters), *(f"    {line}" for line in lines)]


def names_in(lines: Iterable[str]) -> set[str]:
    """Names that statements read or bind."""
    return {node.id for node in ast.walk(parse("\n".join(lines))) if isinstance(node, ast.Name)}


def bound_in(lines: Iterable[str]) -> list[str]:
    """Names that assignments bind, in order."""
    targets = [t for node in parse("\n".join(lines)).body if isinstance(node, ast.Assign) for t in node.targets]
    return [target.id for target in targets if isinstance(target, ast.Name)]
