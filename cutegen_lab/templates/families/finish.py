"""The second kernel of a reduction of everything: one block reduces what the first left, and works out the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cutegen_lab.templates.emit.cute_text import number
from cutegen_lab.templates.emit.module import CUTE_TYPE
from cutegen_lab.templates.families.kernel_module import COMBINE, KernelModule
from cutegen_lab.templates.frontend.expr import NEUTRAL, Reduce, Total
from cutegen_lab.templates.frontend.names import variable

STARTS, WAITS = "cute.arch.griddepcontrol_launch_dependents()", "cute.arch.griddepcontrol_wait()"


def where_overlapping(*calls: str) -> list[str]:
    """Lines of a kernel that make ``calls`` on GPUs that have them."""
    return ["if cutlass.const_expr(overlapping()):", *(f"    {call}" for call in calls)]


def started() -> list[str]:
    """First lines of the kernel before the last: that may start, and wait for what this one leaves."""
    return where_overlapping(STARTS)


def buffers(count: int) -> list[str]:
    """Shared memory for ``count`` reductions over a block of ``threads``."""
    return [
        "smem = cutlass.utils.SmemAllocator()",
        "warps = cute.make_layout((1, threads // 32))",
        *(f"buffer{i} = smem.allocate_tensor(Float32, warps, 16)" for i in range(count)),
    ]


def finishing_kernel(
    module: KernelModule, outputs: Sequence[str], names: Mapping[int, str], left: str, count: str, unroll: int = 1
) -> list[str]:
    """``names`` are those of the reductions; workspace ``left`` has (reductions, ``count``) partial results."""
    body = ["tidx, _, _ = cute.arch.thread_idx()", *buffers(len(names))]
    env = dict(names)
    many = f", unroll={unroll}" if unroll > 1 else ""
    body += where_overlapping(WAITS)
    for position, (index, name) in enumerate(names.items()):
        node = module.graph.nodes[index]
        assert isinstance(node, Reduce | Total)
        combine, neutral = COMBINE[node.op], number(NEUTRAL[node.op])
        body += [
            f"{name} = Float32({neutral})",
            f"for i in cutlass.range(tidx, {count}, threads{many}):",
            f"    {name} = {combine}({name}, {left}[{position}, i])",
            f"{name} = row_reduce({name}, buffer{position}, {combine}, threads)",
        ]
    given = dict(zip(module.outputs, module.graph.outputs, strict=True))
    roots = [given[name].node for name in outputs]
    body += module.single_loads(env, roots)
    body += module.writer.assignments(roots, env, {})
    body.append("if tidx == 0:")
    for spec in module.problem.workload.outputs:
        if spec.name in outputs:
            text, _ = module.writer.expression(given[spec.name].node, env)
            body.append(f"    {variable('g', spec.name)}[0] = {CUTE_TYPE[spec.dtype]}({text})")
    constants = dict.fromkeys(["n", "threads", count, *module.sizes])
    return module.kernel("total_kernel", _tensors(module, outputs, left), list(constants), body)


def finishing_launch(
    module: KernelModule, outputs: Sequence[str], left: str, sizes: Sequence[str], threads: str
) -> list[str]:
    """``sizes`` are what the launcher gives for the kernel's ``n`` and ``count``."""
    n, count = sizes
    arguments = ", ".join([*_tensors(module, outputs, left), n, threads, count, *module.sizes])
    return [
        f"    total_kernel({arguments}).launch(",
        f"        grid=[1, 1, 1], block=[{threads}, 1, 1], stream=stream, use_pdl=overlapping()",
        "    )",
    ]


def _tensors(module: KernelModule, outputs: Sequence[str], left: str) -> list[str]:
    return [*module.single_tensors, left, *(variable("g", name) for name in outputs)]
