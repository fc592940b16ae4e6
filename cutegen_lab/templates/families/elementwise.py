"""Elementwise chains with broadcasting: every output element depends on one element of each input.

Threads cover the iteration space with vectors along its last dimension (along the whole space if nothing is broadcast).
Each thread takes ``loads`` vectors, whose distance is the width of a block, and issues all loads before it uses the
first.
"""

from __future__ import annotations

import math

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.emit.module import call, constraints, signature, text_of_tuple
from cutegen_lab.templates.emit.views import View
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.kernel_module import KernelModule
from cutegen_lab.templates.frontend.expr import Graph, Load
from cutegen_lab.templates.frontend.names import variable
from cutegen_lab.templates.kernels.limits import elementwise as limits

NAME = "elementwise chain"
DOMAINS = {"vec": (1, 2, 4, 8, 16), "threads": (64, 128, 256, 512, 1024), "loads": (1, 2, 4, 8)}
KNOBS = {
    ("loads", 1): "Twice the independent loads in flight per thread.",
    ("threads", 1): "Larger blocks: half as many to start.",
    ("vec", 1): "Half as many memory instructions for the same bytes.",
    ("threads", -1): "Smaller blocks: the last wave is finer.",
    ("loads", -1): "Fewer registers per thread: more warps fit on an SM.",
    ("vec", -1): "Narrower accesses: fewer registers per thread.",
}
_THREADS, _BLOCKS = 128, 2048  # enough to fill an H200


def matches(graph: Graph) -> bool:
    """Whether the graph has no reductions and no products, and gathers only at indices read from an input."""
    if graph.reduced or not graph.space or any(graph.dots()):
        return False
    return all(isinstance(graph.nodes[gather.args[0]], Load) for _, gather in graph.gathers())


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors, 128 threads; two vectors per thread if the blocks still fill an H200."""
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    vec = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    blocks = math.prod(graph.space) // (vec * _THREADS)
    return {"vec": vec, "threads": _THREADS, "loads": 2 if blocks >= 2 * _BLOCKS else 1}


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` exceeds; empty if it is feasible."""
    return str(limits.why_not(config))


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _Elementwise(problem, graph, config).text()


class _Elementwise(KernelModule):
    """Writes the module of an elementwise kernel. Views have the shape (width, vectors), or (width, indices, vectors)
    for the table of a gather."""

    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        reserved = "n rows width vectors body"
        super().__init__(problem, graph, config, reserved, vector=graph.varies, extent="1.0", index="0.0")
        everything = range(len(graph.space))
        self.last = everything[-1]
        self.iotas = dict(graph.iotas())
        beyond = any(view.beyond for view in self.views)
        self.flat = not (self.iotas or beyond) and all(view.dense(everything) for view in self.views)
        self.along = everything if self.flat else everything[-1:]  # dimensions along which vectors lie
        self.narrow = graph.fixed(everything[-1])
        self.loaded = [self.views.by_name[name] for name in self.views.loaded]
        self.tables = list(dict.fromkeys(view.name for view in self.views.of_gather.values()))

    def text(self) -> str:
        sentences = (
            "Each thread issues all its loads before it uses the first; accesses are as wide as the shape allows."
        )
        return self.bundled("elementwise", NAME, sentences, DOMAINS, constraints(""), [self._body(), self._launch()])

    def _wide(self, view: View) -> bool:
        return view.dims[-1] is not None

    # --- the generated function ---

    def _body(self) -> list[str]:
        """``body``: computes results from vectors of the inputs. Values that are constant along a vector come first."""
        env = dict[int, str]()
        for index, view in self.views.of_load.items():
            env[index] = view.name
        for index in self.views.of_gather:
            env[index] = self.writer.name("gathered")
        for index in self.iotas:
            env[index] = self.writer.name("position")
        taken = list(dict.fromkeys(env.values()))
        wide = [name for index, name in env.items() if not self.narrow[index]]
        nodes = [output.node for output in self.graph.outputs]
        single, others = ([n for n in nodes if self.narrow[n] is alike] for alike in (True, False))
        shared = sorted(self._shared(others))
        lines = self.writer.assignments([*shared, *single], env, {})
        results = {node: self.writer.expression(node, env)[0] for node in single}
        for index in shared:
            text, _ = self.writer.expression(index, env)
            env[index] = self.writer.name(f"wide_{text}" if text.isidentifier() else "wide")
            value = text if text.isidentifier() else f"({text})"
            lines.append(f"{env[index]} = {value}.broadcast_to({wide[0]}.shape)")
        lines += self.writer.assignments(others, env, {})
        results |= {node: self.writer.expression(node, env)[0] for node in others}
        lines.append(f"return {text_of_tuple(results[node] for node in nodes)}")
        return [*signature("body", [*taken, *self.sizes]), *(f"    {line}" for line in lines)]

    def _shared(self, roots: list[int]) -> set[int]:
        """Values that are constant along a vector and used by values that are not."""
        seen, found = set[int](), set[int]()
        stack = [*roots]
        while stack:
            index = stack.pop()
            if index in seen:
                continue
            seen.add(index)
            if not self.narrow[index]:
                stack.extend(self.graph.nodes[index].args)
            elif self.graph.varies(index):
                found.add(index)
        return found

    # --- the launch ---

    def _launch(self) -> list[str]:
        rank = len(self.graph.space)
        outer = [] if self.flat else list(range(rank - 1))
        lines = self.launch_head()
        lines += [
            f"    n = {self.space.product(self.along)}",
            f"    rows = {self.space.product(outer)}",
            "    # Shapes are Python ints here: the widest vector that fits every row needs no scalar tail.",
            f"    width = {self.views.width('n', self.along)}",
            "    vectors = n // width * rows",
            *self.size_lines(),
        ]
        for view in self.views:
            lines += self.view_lines(view, *self._layout(view, outer))
        bounds = [text_of_tuple(self._bound(view, d) for d in view.beyond) for view in self.loaded]
        repeats = [self._repeats(name) for name in self.outputs]
        given = [
            text_of_tuple(variable("g", view.name) for view in self.loaded),
            text_of_tuple(variable("g", name) for name in self.tables),
            text_of_tuple(variable("g", name) for name in self.outputs),
            "body", "vectors", "width", "threads", "loads",
            text_of_tuple(self.sizes),
            text_of_tuple(bounds if any(view.beyond for view in self.loaded) else ()),
            text_of_tuple(self._gathers()),
            text_of_tuple(self._ranges()),
            text_of_tuple(repeats if any(dims != "()" for dims in repeats) else ()),
        ]  # fmt: skip
        return [*lines, *call("elementwise", [*given, "stream"], 4)]

    def _layout(self, view: View, outer: list[int]) -> tuple[str, str]:
        """Texts of shape and stride: (width, vectors), or (width, indices, vectors) for the table of a gather."""
        shape, stride = self.space.outer_mode(view, outer, "rows") if outer else ("rows", "0")
        step = view.step(self.along) if self._wide(view) else "0"
        across = "width" if step == "1" else f"width * {step}" if step != "0" else "0"
        values = "width" if self._wide(view) else "1"
        if view.picked is None:
            return f"({values}, (n // width, {shape}))", f"({step}, ({across}, {stride}))"
        size, pitch = (f"{view.tensor}.{what}[{view.picked}]" for what in ("shape", "stride"))
        return f"({values}, {size}, (n // width, {shape}))", f"({step}, {pitch}, ({across}, {stride}))"

    def _dim(self, dim: int, step: str = "width") -> str:
        """Text of a vector's index along a dimension of the space."""
        if dim == self.last:
            return f"((), n // width, {step})"
        within = self.space.product(range(dim + 1, self.last))
        return f"((n // width, {within}), {self.space.size(dim)}, 1)"

    def _bound(self, view: View, dim: int) -> str:
        """Text of a dimension along which a slice extends beyond its tensor: the indices in the slice at which the
        tensor starts and ends, and the number of vectors before the start."""
        axis = view.dims[dim] or 0
        start = view.starts[axis]
        before = "width" if dim == self.last else f"(n // width * ({self.space.product(range(dim + 1, self.last))}))"
        begin = f"max(-({start}), 0)"
        return (
            f"({self._dim(dim)}, {begin}, {view.tensor}.shape[{axis}] - ({start}), "
            f"{begin} {'//' if dim == self.last else '*'} {before})"
        )

    def _gathers(self) -> list[str]:
        """Text of each gather: its table, its index input, and whether indices may be negative."""
        found = []
        for index, gather in self.graph.gathers():
            table = self.tables.index(self.views.of_gather[index].name)
            names = self.views.loaded.index(self.views.of_load[gather.args[0]].name)
            found.append(f"({table}, {names}, {gather.wraps})")
        return found

    def _ranges(self) -> list[str]:
        """Text of the dimensions whose indices are used as values (iota)."""
        found = []
        for index, iota in self.iotas.items():
            within = self.space.product(range(iota.dim + 1, self.last))
            narrow = f"(n // width * ({within}), {self.space.size(iota.dim)}, False)"
            found.append(narrow if self.narrow[index] else "(1, n // width, True)")
        return found

    def _repeats(self, name: str) -> str:
        """Text of the dimensions along which an output does not vary: it is stored only at index 0 along them."""
        dims = self.views.by_name[name].dims
        lacking = [d for d in range(len(dims)) if dims[d] is None and not self.flat]
        return text_of_tuple(self._dim(d, "1") for d in sorted(lacking, key=lambda d: d != self.last))


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write)
