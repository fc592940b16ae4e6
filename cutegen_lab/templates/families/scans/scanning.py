"""What scans along rows and down columns share: direction, padding, and the functions before and after the scan."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.module import signature, text_of_tuple
from cutegen_lab.templates.families.kernel_module import KernelModule, of_numbers
from cutegen_lab.templates.frontend.expr import Graph


class Scanning(KernelModule):
    """Mixin, listed before a family's base class. ``names``: the parameters of ``after`` that hold the scans, by
    node."""

    def __init__(self, problem: Problem, graph: Graph, config: Config, reserved: str) -> None:
        super().__init__(problem, graph, config, reserved)  # type: ignore[call-arg]  # of the family's own base class
        self.scans = dict(graph.scans())
        self.reverse = any(scan.reverse for scan in self.scans.values())
        self.padding = {view.name: view.padding for view in self.views}
        wishes = self.writer.suggested
        self.names = {index: self.writer.name(wishes.get(index, "running")) for index in self.scans}

    def functions(self, loaded: Sequence[str]) -> list[list[str]]:
        """``before`` yields the scans' operands one at a time, so that few are live together. ``after`` computes the
        results from the scans. Both take the views ``loaded``, in this order."""
        env = {index: view.name for index, view in self.views.of_load.items()}
        given = [*loaded, *self.sizes]
        lines, scanned = self._values([scan.args[0] for scan in self.scans.values()], dict(env))
        before = [*signature("before", given), *lines, *(f"    yield {text}" for text in scanned)]
        lines, results = self._values([output.node for output in self.graph.outputs], env | self.names)
        after = [*signature("after", [*self.names.values(), *given]), *lines, f"    return {text_of_tuple(results)}"]
        return [before, after]

    def _values(self, roots: list[int], env: dict[int, str]) -> tuple[list[str], list[str]]:
        """Lines that compute ``roots``, and the texts of ``roots``."""
        lines = [f"    {line}" for line in self.writer.assignments(roots, env, {})]
        return lines, [self.writer.expression(root, env)[0] for root in roots]

    @property
    def ops(self) -> str:
        """Text of a tuple: combine function and neutral element of each scan."""
        return text_of_tuple(of_numbers(scan.op) for scan in self.scans.values())

    def paddings(self, loaded: Sequence[str]) -> str:
        """Text of a tuple: how many zeros precede each of the views ``loaded``."""
        return text_of_tuple(str(self.padding[name]) for name in loaded)
