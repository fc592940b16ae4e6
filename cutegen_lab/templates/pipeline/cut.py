"""Cuts a program into kernels so that the fewest bytes cross memory between them.

A step costs the bytes of its inputs and results, times the kernel's slowness, plus a launch. The cut is a shortest
path: its nodes are the positions between stored values, in order, and each sequence of values that one kernel can
compute is an edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import NotCovered, ProblemError, ProviderError
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.problems.dtypes import from_torch
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.frontend.program import Program, Region
from cutegen_lab.templates.frontend.reader import Programs, agreed, read_region
from cutegen_lab.templates.pipeline.flow import Flow
from cutegen_lab.templates.registry import LAUNCH_BYTES, family_for

_PATIENCE = 8  # consecutive sequences that no kernel can compute, after which longer ones are not tried
_LONGEST = 40  # maximum number of operations in one kernel
MOST_OPERATIONS = 300
_SMALL = 8  # an intermediate value is stored in fp32 if a kernel's largest input has this many times its bytes


@dataclass(frozen=True)
class Piece:
    """The part of the reference that one kernel computes. ``problem``: that part, with workloads restricted to the
    tensors that it reads and writes. ``graphs``: one for each workload."""

    region: Region
    problem: Problem
    graphs: tuple[Graph, ...]
    family: Family

    @property
    def slowness(self) -> float:
        """The family's slowness for the main workload (1: as fast as memory)."""
        return self.family.slowness(self.graphs[0], self.problem.workload)


class Cutter:
    """``flow``: of the main workload's program (default: up to all results). Raises ProviderError if the program is too
    long, or if no kernel computes a result."""

    def __init__(self, programs: Programs, flow: Flow | None = None) -> None:
        self.programs, self.problem = programs, programs.problem
        self.main = programs.of(self.problem.workload.name)
        self.flow = flow or Flow(self.main)
        if len(self.flow.order) > MOST_OPERATIONS:
            raise NotCovered(
                f"the reference has {len(self.flow.order)} operations, but the templates cut at most {MOST_OPERATIONS} "
                "into kernels"
            )
        self._found: dict[tuple[str, ...], Piece | str] = {}
        self._exact: frozenset[str] = frozenset()  # values stored in fp32 instead of their 16-bit dtype

    def pieces(self) -> list[Piece]:
        """The cut with the fewest bytes between kernels. Raises ProviderError that names an operation that no kernel
        serves."""
        while True:
            stretches = self._shortest()
            if stretches is None:
                continue  # try again with more stored values
            found = [self.piece(stretch) for stretch in stretches]
            pieces = [piece for piece in found if isinstance(piece, Piece)]
            if len(pieces) < len(found):
                continue
            if self._exact or not (small := self._small(pieces)):
                return pieces
            self._exact = small
            self._found = {key: why for key, why in self._found.items() if isinstance(why, str)}

    def _small(self, pieces: Sequence[Piece]) -> frozenset[str]:
        """16-bit intermediate values that are small compared with the inputs of their kernels (results of reductions).
        They are kept in fp32, which costs almost nothing and is more accurate. Operands of matrix products keep their
        type."""
        found = {
            name
            for piece in pieces
            for name in piece.region.results
            if name not in self.flow.targets and name not in self.flow.kept
            and self.tensor(self.main, name).dtype in (DType.BF16, DType.F16)
            and _SMALL * self.flow.bytes_of([name]) <= max(self.flow.bytes_of([i]) for i in piece.region.inputs)
        }  # fmt: skip
        for piece in pieces:
            for _, dot in piece.graphs[0].dots():
                found -= {self.flow.storage(piece.region.inputs[at]) for at in (dot.first, dot.second)}
        return frozenset(found)

    def piece(self, computed: Sequence[str]) -> Piece | str:
        """The kernel that computes ``computed`` for every workload, or the reason if there is none."""
        found = self._tried(computed)
        if isinstance(found, Piece):
            found = self._found[tuple(computed)] = self._for_every_workload(found)
        return found

    def _shortest(self) -> list[list[str]] | None:
        order, launch = self.flow.order, LAUNCH_BYTES
        cost: list[float] = [0.0] + [inf] * len(order)
        previous = [0] * (len(order) + 1)
        for start in range(len(order)):
            misses = 0
            for end in range(start + 1, min(start + _LONGEST, len(order)) + 1):
                if cost[start] == inf or misses > _PATIENCE:
                    break
                piece = self._tried(order[start:end])
                if isinstance(piece, str) or (slow := piece.slowness) == inf:
                    misses += 1
                    continue
                misses = 0
                bytes_moved = self.flow.bytes_of((*piece.region.inputs, *piece.region.results))
                if (total := cost[start] + bytes_moved * slow + launch) <= cost[end]:  # prefer the last of equal cuts
                    cost[end], previous[end] = total, start
        if cost[-1] == inf:
            self._store_more(next(at for at in reversed(range(len(order))) if cost[at] < inf))
            return None
        ends = [len(order)]
        while ends[-1]:
            ends.append(previous[ends[-1]])
        ends.reverse()
        return [order[start:end] for start, end in pairwise(ends)]

    def _store_more(self, at: int) -> None:
        """Also stores the moved values that the operation at ``at`` reads, since no family serves it. Raises
        ProviderError if it reads none."""
        name = self.flow.order[at]
        nodes = self.main.nodes
        moves = {
            source
            for source in self.flow.sources_of(name)
            if source not in self.flow.stored and isinstance(self.flow.value(source), torch.Tensor)
            and nodes[source].op == "call_function"
        }  # fmt: skip
        if not moves:
            reason = self._tried([name])
            where = "" if " at line " in str(reason) else f": {self.flow.described(name)}"
            raise NotCovered(f"{reason}{where}")
        self.flow = Flow(self.main, {*self.flow.kept, *moves}, self.flow.results)
        self._found.clear()

    def _tried(self, computed: Sequence[str]) -> Piece | str:
        """As :meth:`piece`, for the main workload only."""
        key = tuple(computed)
        if key not in self._found:
            self._found[key] = self._try(key)
        return self._found[key]

    def _try(self, computed: tuple[str, ...]) -> Piece | str:
        region = self.flow.region(computed)
        if region is None:
            return (
                "the templates do not cover a view that changes the dimensions of a value computed in the same kernel"
            )
        try:
            part = self._part(region, self.problem.workload)
            problem = replace(self.problem, workloads=(part,), check_workloads=())
            graph = read_region(self.main, region, part)
            family = family_for(graph, self.programs.arch)
            config = family.default_config(graph, part)
            if why := family.why_not(graph, config):
                return f"no config of the {family.name} template serves {part.describe()}: {why}"
            family.write(problem, graph, config)
        except (ProviderError, ProblemError) as error:
            return error.message
        return Piece(region, problem, (graph,), family)

    def _for_every_workload(self, piece: Piece) -> Piece | str:
        region = piece.region

        def read_one(workload: Workload) -> Graph:
            return read_region(self.programs.of(workload.name), region, workload)

        try:
            main = [self._part(region, workload) for workload in self.problem.workloads]
            checks = [self._part(region, workload) for workload in self.problem.check_workloads]
            problem = replace(self.problem, workloads=tuple(main), check_workloads=tuple(checks))
            graphs = (agreed([*main, *checks], read_one), *map(read_one, main[1:]))
            return replace(piece, problem=problem, graphs=graphs)
        except ProviderError as error:
            return error.message

    def _part(self, region: Region, workload: Workload) -> Workload:
        """``workload`` restricted to a region; tensors between steps have the names of their values."""
        program = self.programs.of(workload.name)
        inputs, results = ([self.tensor(program, name) for name in names] for names in (region.inputs, region.results))
        return Workload(workload.name, tuple(inputs), tuple(results), workload.why)

    def tensor(self, program: Program, name: str) -> TensorSpec:
        """The tensor of a value: an input of the problem, or a result. Raises ProviderError if the program has none."""
        if name in program.inputs:
            return program.workload.inputs[program.inputs.index(name)]
        if name not in program.nodes:
            raise NotCovered(
                f"the reference has other operations for the workload {program.workload.name!r} than for the main one"
            )
        value = program.nodes[name].meta["val"]
        dtype = from_torch(value.dtype, "a value between two steps")
        if dtype.is_float8:
            raise NotCovered("the templates do not cover 8-bit floats between two steps")
        exact = self.flow.storage(name) in self._exact
        return TensorSpec(name, DType.F32 if exact else dtype, tuple(value.shape))
