"""Elementwise chains of any arity, with broadcasting: every output element follows from one element of each input.

The iteration space is walked in vectors along its last dimension (or along everything, where nothing is broadcast).
Each thread takes ``loads`` vectors a block's width apart and issues all its loads before it uses the first.
"""

from __future__ import annotations

import math

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.expr import Graph, Load, Output
from cutegen_lab.templates.families.kernel_module import KernelModule
from cutegen_lab.templates.families.reading import READ
from cutegen_lab.templates.module import variable
from cutegen_lab.templates.views import View

NAME = "elementwise chain"
DOMAINS = {"vec": (1, 2, 4, 8, 16), "threads": (64, 128, 256, 512, 1024), "loads": (1, 2, 4, 8)}
KNOBS = {
    ("loads", 1): "Twice the independent loads in flight a thread.",
    ("threads", 1): "Larger blocks: half as many to start.",
    ("vec", 1): "Half as many memory instructions for the same bytes.",
    ("threads", -1): "Smaller blocks: the last wave is finer.",
    ("loads", -1): "Fewer registers a thread: more warps fit an SM.",
    ("vec", -1): "Narrower accesses: fewer registers a thread.",
}
MAX_VALUES = 64
_THREADS, _BLOCKS = 128, 2048  # what fills an H200


def matches(graph: Graph) -> bool:
    if graph.reduced or not graph.space or any(graph.dots()):
        return False
    return all(isinstance(graph.nodes[pick.args[0]], Load) for _, pick in graph.picks())


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors, 128 threads; two vectors a thread where the blocks then fill an H200 nevertheless."""
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    vec = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    blocks = math.prod(graph.space) // (vec * _THREADS)
    return {"vec": vec, "threads": _THREADS, "loads": 2 if blocks >= 2 * _BLOCKS else 1}


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` is beyond; empty where it is feasible."""
    values = int(config["vec"]) * int(config["loads"])
    return f"{values} values in a thread's registers, of {MAX_VALUES} at most" if values > MAX_VALUES else ""


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _Elementwise(problem, graph, config).text()


class _Elementwise(KernelModule):
    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        reserved = "n width vectors vec tidx bidx first mine one at per_row"
        super().__init__(problem, graph, config, reserved, vector=graph.varies, extent="1.0", index="0.0")
        everything = range(len(graph.space))
        self.places = dict(graph.places())
        self.beyond = {d for view in self.views for d in view.beyond}
        self.flat = not (self.places or self.beyond) and all(view.dense(everything) for view in self.views)
        self.along = everything if self.flat else everything[-1:]  # what vectors lie along
        self.narrow = graph.fixed(everything[-1])
        self.picked = {index: self.writer.name("picked") for index in self.views.of_pick}
        self.lacking = {
            name: [d for d in everything[:-1] if self.views.by_name[name].dims[d] is None] for name in self.outputs
        }  # dimensions of the space that an output does not have: who is first along them stores it

    def text(self) -> str:
        kernel = self._kernel()
        sentences = (
            "Each thread issues all its loads before it uses the first; accesses are as wide as the shape allows."
        )
        host = [
            "def constraints(config, workload, device):", '    """A thread\'s values stay in registers."""',
            f'    return config["vec"] * config["loads"] <= {MAX_VALUES}',
        ]  # fmt: skip
        device = [READ, *([_NEAREST] if self.picked else []), *([_PLACES] if self.places else [])]
        return self.module(NAME, sentences, DOMAINS, host, device, [kernel, self._launch()])

    def _kernel(self) -> list[str]:
        body = [
            "tidx, _, _ = cute.arch.thread_idx()",
            "bidx, _, _ = cute.arch.block_idx()",
            "first = bidx * threads * loads + tidx",
            "mine = cute.make_layout((vec, loads))",
        ]
        alike = any(self.narrow[index] for index in (*self.picked, *self.places))
        if alike or any(not self._wide(view) for view in self.views):
            body.append("one = cute.make_layout((1, loads))  # what has one value for a whole vector")
        body.append("")
        loaded = [self.views.by_name[name] for name in self.views.loaded]
        for view in loaded:
            register, shape = variable("r", view.name), "mine" if self._wide(view) else "one"
            body += [
                f"{register} = cute.make_rmem_tensor({shape}, {variable('g', view.name)}.element_type)",
                f"{register}.fill(0.0)",
            ]
        if loaded:
            body += ["for i in cutlass.range_constexpr(loads):", "    at = first + i * threads", "    if at < vectors:"]
        for view in loaded:
            source, register = variable("g", view.name), variable("r", view.name)
            indent = " " * 8
            if view.beyond:
                body.append(f"{indent}if {self._inside(view)}:")
                indent += " " * 4
            at = " - ".join(["at", *(self._before(view, d) for d in view.beyond)])
            if self._wide(view):
                body.append(f"{indent}load_lasting({source}[None, {at}], {register}[None, i])")
            else:
                body.append(f"{indent}{register}[0, i] = {source}[{at}]")
        body += [
            *self._picks(),
            "",
            *self._values(),
            "for i in cutlass.range_constexpr(loads):",
            "    at = first + i * threads",
        ]
        conditions = {name: self._condition(name) for name in self.outputs}
        for condition in dict.fromkeys(conditions.values()):
            body.append(f"    if {condition}:")
            for name in (n for n in self.outputs if conditions[n] == condition):
                register, target = variable("r", name), variable("g", name)
                copy = f"cute.autovec_copy({register}[None, i], {target}[None, at])"
                wide = self._wide(self.views.by_name[name])
                body.append(f"        {copy if wide else f'{target}[at] = {register}[0, i]'}")
        return self.kernel("elementwise_kernel", self.tensors, self._constants(), body)

    def _condition(self, name: str) -> str:
        """Who stores an output."""
        tests = ["at < vectors"]
        if not self._wide(self.views.by_name[name]):
            tests.append("at % per_row == 0")
        tests += [f"at // per_row // within_{d} % count_{d} == 0" for d in self.lacking[name]]
        return " and ".join(tests)

    def _place(self, dim: int) -> str:
        """Text of where a vector begins along a dimension of the space."""
        last = dim == len(self.graph.space) - 1
        return "at % per_row * vec" if last else f"at // per_row // within_{dim} % count_{dim}"

    def _before(self, view: View, dim: int) -> str:
        """Text of how many vectors a part has before its tensor begins."""
        last = dim == len(self.graph.space) - 1
        return f"{view.name}_from_{dim}" + (" // vec" if last else f" * per_row * within_{dim}")

    def _inside(self, view: View) -> str:
        """Who loads a part that lies beyond its tensor."""
        return " and ".join(
            f"{view.name}_from_{d} <= {self._place(d)} and {self._place(d)} < {view.name}_to_{d}" for d in view.beyond
        )

    @property
    def _ends(self) -> dict[str, str]:
        """Where tensors begin and end in their parts, in a launcher."""
        found = {}
        for view in self.views:
            for d in view.beyond:
                axis = view.dims[d] or 0
                found[f"{view.name}_from_{d}"] = f"max(-({view.starts[axis]}), 0)"
                found[f"{view.name}_to_{d}"] = f"{view.tensor}.shape[{axis}] - ({view.starts[axis]})"
        return found

    def _picks(self) -> list[str]:
        """Loads of what other loads name."""
        lines: list[str] = []
        for index, view in self.views.of_pick.items():
            source, shape = variable("g", view.name), "one" if self.narrow[index] else "mine"
            at = self.graph.nodes[index].args[0]
            wide = not self.narrow[at]
            which = f"{variable('r', self.views.of_load[at].name)}[{'j' if wide else 0}, i]"
            named, register = f"nearest({source}, {which})", variable("r", self.picked[index])
            lines += [
                f"{register} = cute.make_rmem_tensor({shape}, {source}.element_type)",
                f"{register}.fill(0.0)",
                "for i in cutlass.range_constexpr(loads):",
                "    at = first + i * threads",
                "    if at < vectors:",
            ]
            if wide:
                lines.append("        for j in cutlass.range_constexpr(vec):")
                lines.append(f"            {register}[j, i] = {source}[j, {named}, at]")
            elif self._wide(view):
                lines.append(f"        cute.autovec_copy({source}[None, {named}, at], {register}[None, i])")
            else:
                lines.append(f"        {register}[0, i] = {source}[0, {named}, at]")
        return lines

    def _values(self) -> list[str]:
        """From registers with inputs to registers with outputs: first what is the same all along a vector."""
        lines, env = [], {}
        for index, view in self.views.of_load.items():
            lines.append(f"{view.name} = {variable('r', view.name)}.load().to(Float32)")
            env[index] = view.name
        for index, name in self.picked.items():
            lines.append(f"{name} = {variable('r', name)}.load().to(Float32)")
            env[index] = name
        for index, place in self.places.items():
            env[index] = self.writer.name("place")
            shape, each = ("one", f"per_row * within_{place.dim}") if self.narrow[index] else ("mine", "1")
            count = f"count_{place.dim}" if self.narrow[index] else "per_row"
            lines.append(f"{env[index]} = places(first, threads, {each}, {count}, {shape})")
        named = list(zip(self.outputs, self.graph.outputs, strict=True))
        single = [(name, o) for name, o in named if not self._wide(self.views.by_name[name])]
        wide = [(name, o) for name, o in named if self._wide(self.views.by_name[name])]
        local: dict[int, str] = {}
        shared = sorted(self._shared(wide))
        lines += self.writer.assignments([*shared, *(o.node for _, o in single)], env, local)
        lines += self._registers(single, env, "one")
        for index in shared:
            text, _ = self.writer.expression(index, env)
            env[index] = self.writer.name(f"wide_{text}" if text.isidentifier() else "wide")
            lines.append(f"{env[index]} = {text if text.isidentifier() else f'({text})'}.broadcast_to(mine.shape)")
        lines += self.writer.assignments([o.node for _, o in wide], env, local)
        return lines + self._registers(wide, env, "mine")

    def _shared(self, wide: list[tuple[str, Output]]) -> set[int]:
        """Values that are the same all along a vector, and are used by what is not."""
        seen, found = set[int](), set[int]()
        stack = [output.node for _, output in wide]
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

    def _registers(self, outputs: list[tuple[str, Output]], env: dict[int, str], shape: str) -> list[str]:
        lines = []
        for name, output in outputs:
            text, _ = self.writer.expression(output.node, env)
            register, target = variable("r", name), variable("g", name)
            lines.append(f"{register} = cute.make_rmem_tensor({shape}, {target}.element_type)")
            if self.graph.varies(output.node):
                lines.append(f"{register}.store(({text}).to({target}.element_type))")
            else:
                lines.append(f"{register}.fill({text})")
        return lines

    def _wide(self, view: View) -> bool:
        return view.dims[-1] is not None

    def _constants(self) -> list[str]:
        everything = range(len(self.graph.space))
        told = {p.dim for index, p in self.places.items() if self.narrow[index]} | (self.beyond - {everything[-1]})
        lacking = sorted(told.union(*self.lacking.values()))
        narrow = any(not self._wide(self.views.by_name[name]) for name in self.outputs)
        places = ["per_row"] if narrow or lacking or self.places or self.beyond else []
        places += [f"{what}_{d}" for d in lacking for what in ("within", "count")]
        return ["vectors", "vec", *places, "threads", "loads", *self.sizes, *self._ends]

    def _launch(self) -> list[str]:
        rank = len(self.graph.space)
        lines = self.launch_head()
        outer = [] if self.flat else list(range(rank - 1))
        lines += [
            f"    n = {self.space.product(self.along)}",
            f"    rows = {self.space.product(outer)}",
            "    # Shapes are Python ints here: the widest vector that fits every row needs no scalar tail.",
            f"    width = {self.views.width('n', self.along)}",
            "    vectors = n // width * rows",
            *self.size_lines(),
        ]
        for view in self.views:
            shape, stride = self.space.outer_mode(view, outer, "rows") if outer else ("rows", "0")
            step = view.step(self.along) if self._wide(view) else "0"
            across = "width" if step == "1" else f"width * {step}" if step != "0" else "0"
            if view.picked is not None:
                size, pitch = (f"{view.tensor}.{what}[{view.picked}]" for what in ("shape", "stride"))
                modes = f"(width, {size}, (n // width, {shape})), stride=({step}, {pitch}, ({across}, {stride}))"
                layout = f"cute.make_layout({modes})"
            elif self._wide(view):
                layout = f"cute.make_layout((width, (n // width, {shape})), stride=({step}, ({across}, {stride})))"
            else:
                layout = f"cute.make_layout((n // width, {shape}), stride=(0, {stride}))"
            lines += view.tensor_lines(layout)
        given = {"vec": "width", "per_row": "n // width"}
        for d in range(rank - 1):
            given |= {f"count_{d}": self.space.size(d), f"within_{d}": self.space.product(range(d + 1, rank - 1))}
        given |= self._ends
        arguments = self.tensors + [given.get(name, name) for name in self._constants()]
        return [
            *lines,
            f"    elementwise_kernel({', '.join(arguments)}).launch(",
            "        grid=[(vectors + threads * loads - 1) // (threads * loads), 1, 1],",
            "        block=[threads, 1, 1],",
            "        stream=stream,",
            "    )",
        ]


_NEAREST = '''
def nearest(gX, at):
    """``at``, or the end that it lies beyond."""
    return cutlass.min(cutlass.max(at, 0), cute.size(gX, mode=[1]) - 1)
'''

_PLACES = '''
def places(first, stride, each, count, mine):
    """Where each of a thread's values is along a dimension of ``count`` vectors, the next every ``each`` vectors."""
    rPlace = cute.make_rmem_tensor(mine, Float32)
    vec, loads = mine.shape
    for i in range(loads):
        at = (first + i * stride) // each % count * vec
        for j in range(vec):
            rPlace[j, i] = Float32(at + j)
    return rPlace.load()
'''
