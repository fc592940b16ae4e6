"""What scans along rows and down columns write alike: their names, a step's scanned values, and its results."""

from __future__ import annotations

from collections.abc import Callable

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.expr import Graph, Scan
from cutegen_lab.templates.families.kernel_module import KernelModule
from cutegen_lab.templates.module import signature, text_of_tuple, variable


class Scanning(KernelModule):
    """To stand before a family's own base. ``names`` are what is carried from step to step, by scan."""

    def __init__(self, problem: Problem, graph: Graph, config: Config, reserved: str) -> None:
        super().__init__(problem, graph, config, reserved)  # type: ignore[call-arg]  # the family's own base's
        self.scans = dict(graph.scans())
        self.reverse = any(scan.reverse for scan in self.scans.values())
        self.padding = {view.name: view.padding for view in self.views}
        self.names = {index: self.writer.name("running") for index in self.scans}

    def functions(self) -> list[list[str]]:
        """``before``: from loaded values to those that are scanned; ``after``: from scanned and loaded to results."""
        loaded = {index: view.name for index, view in self.views.of_load.items()}
        given = [*dict.fromkeys(loaded.values()), *self.sizes]
        env = dict(loaded)
        roots = [scan.args[0] for scan in self.scans.values()]
        before = [*signature("before", given), *_indented(self.writer.assignments(roots, env, {}))]
        before.append(f"    return {text_of_tuple(self.writer.expression(root, env)[0] for root in roots)}")
        env = loaded | self.names
        roots = [output.node for output in self.graph.outputs]
        after = [*signature("after", [*self.names.values(), *given])]
        after += _indented(self.writer.assignments(roots, env, {}))
        after.append(f"    return {text_of_tuple(self.writer.expression(root, env)[0] for root in roots)}")
        return [before, after]

    def scanned(self, scan_lines: Callable[[str, Scan], list[str]]) -> list[str]:
        """A step from loaded values to registers with its results; ``scan_lines`` scan ``r{name}`` in place."""
        env = {index: view.name for index, view in self.views.of_load.items()}
        lines = self.writer.assignments([scan.args[0] for scan in self.scans.values()], env, {})
        for index, scan in self.scans.items():
            name = self.names[index]
            lines += [f"r{name}.store({self._vector(scan.args[0], env)})", *scan_lines(name, scan)]
            env[index] = f"r{name}.load()"
        named = list(zip(self.outputs, self.graph.outputs, strict=True))
        lines += self.writer.assignments([output.node for _, output in named], env, {})
        for name, output in named:
            register, target = variable("r", name), variable("g", name)
            lines.append(f"{register} = cute.make_rmem_tensor(mine, {target}.element_type)")
            lines.append(f"{register}.store(({self._vector(output.node, env)}).to({target}.element_type))")
        return lines

    def _vector(self, index: int, env: dict[int, str]) -> str:
        text, _ = self.writer.expression(index, env)
        like = next(iter(self.names.values()))
        return text if self.writer.is_vector(index) else f"cute.full_like(r{like}.load(), {text})"


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
