"""What scans along rows and down columns begin with: the scans, their direction, padding, and names for them."""

from __future__ import annotations

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.families.kernel_module import KernelModule
from cutegen_lab.templates.frontend.expr import Graph


class Scanning(KernelModule):
    """To stand before a family's own base. ``names`` are what is carried from step to step, by scan."""

    def __init__(self, problem: Problem, graph: Graph, config: Config, reserved: str) -> None:
        super().__init__(problem, graph, config, reserved)  # type: ignore[call-arg]  # the family's own base's
        self.scans = dict(graph.scans())
        self.reverse = any(scan.reverse for scan in self.scans.values())
        self.padding = {view.name: view.padding for view in self.views}
        self.names = {index: self.writer.name("running") for index in self.scans}
