"""The second kernel of a full reduction: the function that computes the results, and its launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cutegen_lab.templates.emit.module import call, signature, text_of_tuple
from cutegen_lab.templates.families.kernel_module import KernelModule, of_numbers
from cutegen_lab.templates.frontend.expr import FullReduce, Reduce
from cutegen_lab.templates.frontend.names import variable


def finishing_function(module: KernelModule, outputs: Sequence[str], names: dict[int, str], count: str) -> list[str]:
    """``finish_totals``: computes ``outputs`` from the totals. ``names``: the totals' names by node. ``count``: text of
    the number of partial results that each total folds."""
    given = dict(zip(module.outputs, module.graph.outputs, strict=True))
    roots = [given[name].node for name in outputs]
    env = names | module.single_numbers
    lines = module.writer.assignments(roots, env, {})
    lines.append(f"return {text_of_tuple(module.writer.expression(root, env)[0] for root in roots)}")
    parameters = [*names.values(), "n", count, *dict.fromkeys(module.single_numbers.values()), *module.sizes]
    return [*signature("finish_totals", parameters), *(f"    {line}" for line in lines)]


def finishing_launch(
    module: KernelModule, outputs: Sequence[str], totals: Iterable[int], partials: str, sizes: Sequence[str],
    unroll: int = 0,
) -> list[str]:  # fmt: skip
    """Lines of ``launch`` that start the kernel. ``partials``: name of the workspace, which has a row for each node of
    ``totals``. ``sizes``: texts of three numbers: elements in a total, threads in the block, partial results in a
    row."""
    nodes = [module.graph.nodes[index] for index in totals]
    ops = [of_numbers(n.op) for n in nodes if isinstance(n, Reduce | FullReduce)]
    n, threads, count = sizes
    given = [
        text_of_tuple(module.single_tensors), partials, text_of_tuple(variable("g", name) for name in outputs),
        "finish_totals", text_of_tuple(ops), text_of_tuple(module.sizes), n, threads, count, str(unroll), "stream",
    ]  # fmt: skip
    return call("reduce_partials", given, 4)
