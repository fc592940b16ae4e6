"""The second kernel of a reduction of everything, ``total_kernel``: what it works out, and its call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cutegen_lab.templates.emit.module import call, signature, text_of_tuple
from cutegen_lab.templates.families.kernel_module import KernelModule, of_numbers
from cutegen_lab.templates.frontend.expr import FullReduce, Reduce
from cutegen_lab.templates.frontend.names import variable


def finishing_function(module: KernelModule, outputs: Sequence[str], names: dict[int, str], count: str) -> list[str]:
    """``finish_totals``: from the totals, by their nodes' ``names``, to ``outputs``. ``count`` is the text of how many
    partial results each total is of."""
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
    """Lines of a launcher. Workspace ``partials`` has a row for each of the nodes ``totals``; ``sizes`` are the texts
    of how many elements a total is of, of the block's threads, and of how many partial results a row has."""
    nodes = [module.graph.nodes[index] for index in totals]
    ops = [of_numbers(n.op) for n in nodes if isinstance(n, Reduce | FullReduce)]
    n, threads, count = sizes
    given = [
        text_of_tuple(module.single_tensors), partials, text_of_tuple(variable("g", name) for name in outputs),
        "finish_totals", text_of_tuple(ops), text_of_tuple(module.sizes), n, threads, count, str(unroll), "stream",
    ]  # fmt: skip
    return call("reduce_partials", given, 4)
