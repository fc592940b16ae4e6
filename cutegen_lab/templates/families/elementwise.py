"""Elementwise chains of any arity, with broadcasting: every output element follows from one element of each input.

The iteration space is walked in vectors along its last dimension (or along everything, where nothing is broadcast).
Each thread takes ``loads`` vectors a block's width apart and issues all its loads before it uses the first.
"""

from __future__ import annotations

import math

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.cute_text import Writer
from cutegen_lab.templates.expr import Dims, Graph
from cutegen_lab.templates.module import (
    Space,
    approximate,
    clean,
    constexprs,
    header,
    helpers,
    signature,
    tunable,
    variable,
)

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


def matches(graph: Graph) -> bool:
    return not graph.reduced and bool(graph.space) and not any(graph.dots())


def default_config(graph: Graph, workload: Workload) -> Config:
    """16-byte vectors, 256 threads, two vectors a thread."""
    itemsize = min(t.dtype.itemsize for t in workload.tensors)
    vec = min(max(v for v in DOMAINS["vec"] if v * itemsize <= 16), 8)
    total = math.prod(graph.space)
    loads = 2 if total >= 1 << 20 else 1
    return {"vec": vec, "threads": 256, "loads": loads}


def feasible(graph: Graph, config: Config) -> bool:
    return int(config["vec"]) * int(config["loads"]) <= MAX_VALUES


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return _Elementwise(problem, graph, config).text()


class _Elementwise:
    def __init__(self, problem: Problem, graph: Graph, config: Config) -> None:
        self.problem, self.graph, self.config = problem, graph, config
        fast, coarse = approximate(problem.workload)
        self.inputs = tuple(t.name for t in problem.workload.inputs)
        self.outputs = tuple(t.name for t in problem.workload.outputs)
        self.space = Space(graph, self.inputs)
        self.dims: dict[str, Dims] = {self.inputs[load.tensor]: load.dims for _, load in graph.loads()}
        self.dims |= {name: output.dims for name, output in zip(self.outputs, graph.outputs, strict=True)}
        everything = range(len(graph.space))
        self.flat = all(self.space.contiguous(dims, everything) for dims in self.dims.values())
        self.writer = Writer(graph, graph.varies, fast=fast, coarse=coarse, extent="1.0", index="0.0")
        self.writer.reserve(["n", "width", "vectors", "vec", "tidx", "bidx", "first", *self.inputs, *self.outputs])

    def text(self) -> str:
        kernel = self._kernel()
        sentences = (
            "Each thread issues all its loads before it uses the first; accesses are as wide as the shape allows."
        )
        lines = header(self.problem, self.graph, NAME, sentences) + tunable(DOMAINS)
        lines += [
            "", "def constraints(config, workload, device):", '    """A thread\'s values stay in registers."""',
            f'    return config["vec"] * config["loads"] <= {MAX_VALUES}', "",
        ]  # fmt: skip
        lines += [*helpers(self.writer.helpers), "", *kernel, "", "", *self._launch()]
        return clean(lines)

    def _used(self) -> list[str]:
        return list(self.dims)

    def _kernel(self) -> list[str]:
        names = self._used()
        loads = [n for n in names if n not in self.outputs]
        parameters = [f"{variable('g', name)}: cute.Tensor" for name in names]
        constants = [f"{name}: cutlass.Constexpr" for name in ("vectors", "vec", "threads", "loads")]
        body = [
            "tidx, _, _ = cute.arch.thread_idx()",
            "bidx, _, _ = cute.arch.block_idx()",
            "first = bidx * threads * loads + tidx",
            "mine = cute.make_layout((vec, loads))",
            "",
        ]
        for name in loads:
            register = variable("r", name)
            body += [
                f"{register} = cute.make_rmem_tensor(mine, {variable('g', name)}.element_type)",
                f"{register}.fill(0.0)",
            ]
        body += ["for i in cutlass.range_constexpr(loads):", "    at = first + i * threads", "    if at < vectors:"]
        for name in loads:
            if self._wide(name):
                body.append(
                    f"        cute.autovec_copy({variable('g', name)}[None, at], {variable('r', name)}[None, i])"
                )
            else:  # one value for the whole vector
                body.append(f"        {variable('r', name)}[None, i].fill({variable('g', name)}[at])")
        body.append("")
        env: dict[int, str] = {}
        for index, load in self.graph.loads():
            name = self.inputs[load.tensor]
            body.append(f"{name} = {variable('r', name)}.load().to(Float32)")
            env[index] = name
        roots = [output.node for output in self.graph.outputs]
        body += self.writer.assignments(roots, env, {})
        for name, output in zip(self.outputs, self.graph.outputs, strict=True):
            text, _ = self.writer.expression(output.node, env)
            if not self.graph.varies(output.node):
                text = f"cute.full_like({next(iter(env.values()))}, {text})"
            register, target = variable("r", name), variable("g", name)
            body += [f"{register} = cute.make_rmem_tensor(mine, {target}.element_type)"]
            body += [f"{register}.store(({text}).to({target}.element_type))"]
        body += ["for i in cutlass.range_constexpr(loads):", "    at = first + i * threads", "    if at < vectors:"]
        body += [
            f"        cute.autovec_copy({variable('r', n)}[None, i], {variable('g', n)}[None, at])"
            for n in self.outputs
        ]
        head = signature("elementwise_kernel", [*parameters, *constants])
        return ["@cute.kernel", *head, *(f"    {line}" if line else "" for line in body)]

    def _wide(self, name: str) -> bool:
        return self.dims[name][-1] is not None

    def _launch(self) -> list[str]:
        rank = len(self.graph.space)
        tensors = [f"{name}: cute.Tensor" for name in (*self.inputs, *self.outputs)]
        lines = ["@cute.jit", *signature("launch", [*tensors, "stream: cuda.CUstream", *constexprs(self.config)])]
        length = self.space.product(range(rank)) if self.flat else self.space.size(rank - 1)
        outer = [] if self.flat else list(range(rank - 1))
        lines += [f"    n = {length}", f"    rows = {self.space.product(outer)}"]
        lines += [
            "    # Shapes are Python ints here: the widest vector that divides the last dimension needs no scalar tail."
        ]
        lines += ["    width = math.gcd(n, vec)", "    vectors = n // width * rows"]
        for name in self._used():
            dims = self.dims[name]
            shape, stride = self.space.outer_mode(name, dims, outer, "rows") if outer else ("rows", "0")
            if self._wide(name):
                layout = f"cute.make_layout((width, (n // width, {shape})), stride=(1, (width, {stride})))"
            else:
                layout = f"cute.make_layout((n // width, {shape}), stride=(0, {stride}))"
            lines.append(f"    {variable('g', name)} = cute.make_tensor({name}.iterator, {layout})")
        arguments = ", ".join([*(variable("g", name) for name in self._used()), "vectors", "width", "threads", "loads"])
        return [
            *lines,
            f"    elementwise_kernel({arguments}).launch(",
            "        grid=[(vectors + threads * loads - 1) // (threads * loads), 1, 1],",
            "        block=[threads, 1, 1],",
            "        stream=stream,",
            "    )",
        ]
