"""Tensors that each step reads and writes: names, sizes, and views of the same memory in several shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.templates.frontend.names import clashes
from cutegen_lab.templates.pipeline.cut import Cutter, Piece
from cutegen_lab.templates.pipeline.sizes import Size, fitted
from cutegen_lab.templates.template import Single


@dataclass(frozen=True)
class Tensor:
    """A workspace tensor, or a row-major view of tensor ``base`` with this shape. ``shape``: in elements."""

    name: str
    dtype: str
    shape: tuple[Size, ...]
    base: str = ""


@dataclass(frozen=True)
class Step:
    """A step. ``name``: prefix of its kernel's parameters. Its tensors are named as in the pipeline's
    ``launch``."""

    name: str
    kernel: Single

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self.kernel.problem.workload.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self.kernel.problem.workload.outputs


class Wiring:
    """Steps with named tensors. ``tensors``: tensors that are neither inputs nor outputs of the problem, in order of
    creation."""

    def __init__(self, cutter: Cutter, pieces: Sequence[Piece], names: Sequence[str]) -> None:
        self.cutter, self.problem = cutter, cutter.problem
        self.workloads = self.problem.workloads + self.problem.check_workloads
        self._prefixes = names
        self.taken = {t.name for t in self.problem.workload.tensors}
        self.tensors: list[Tensor] = []
        self._memory: dict[str, list[str]] = {}  # stored value → tensors that hold it
        self.steps = [self._step(name, piece) for name, piece in zip(names, pieces, strict=True)]

    def _step(self, name: str, piece: Piece) -> Step:
        """A step with named tensors. Inputs first: their names come from the results of earlier steps."""
        inputs = [self._input(value) for value in piece.region.inputs]
        results, seen = list[str](), dict[str, int]()
        for value in piece.region.results:
            at = seen[value] = seen.get(value, -1) + 1
            results.append(self._result(value, at))
        problem = replace(
            piece.problem,
            workloads=tuple(_named(w, inputs, results) for w in piece.problem.workloads),
            check_workloads=tuple(_named(w, inputs, results) for w in piece.problem.check_workloads),
        )
        return Step(name, Single(problem, piece.graphs, piece.family, self.cutter.programs.arch))

    def _input(self, value: str) -> str:
        program = self.cutter.main
        root = self.cutter.flow.storage(value)
        if root in program.inputs:
            name = program.workload.inputs[program.inputs.index(root)].name
        else:
            name = self._memory[root][0]
        return name if value == root else self._seen(name, value)

    def _result(self, value: str, at: int) -> str:
        targets = self.cutter.flow.targets.get(value, [])
        if not targets:
            wish = self.cutter.main.variables.get(value, "")
            name = wish if wish and self._fits(wish) else self._free("h")
            self.taken.add(name)
            self.tensors.append(
                Tensor(name, self.cutter.tensor(self.cutter.main, value).dtype.value, self._shape(value))
            )
        else:
            out = self.problem.workload.outputs[targets[at]]
            same = all(
                self.cutter.tensor(self.cutter.programs.of(w.name), value).shape == w.outputs[targets[at]].shape
                for w in self.workloads
            )
            name = out.name if same else self._seen(out.name, value)
        self._memory.setdefault(value, []).append(name)
        return name

    def _seen(self, base: str, value: str) -> str:
        """View of the memory of ``base`` in the shape of ``value``."""
        spec, shape = self.cutter.tensor(self.cutter.main, value), self._shape(value)
        made = next((t for t in self.tensors if t.base == base and t.shape == shape), None)
        if made is None:
            made = Tensor(self._free(f"{base}_{len(shape)}d"), spec.dtype.value, shape, base)
            self.tensors.append(made)
        return made.name

    def _shape(self, value: str) -> tuple[Size, ...]:
        shapes = [self.cutter.tensor(self.cutter.programs.of(w.name), value).shape for w in self.workloads]
        return tuple(fitted(list(zip(self.workloads, sizes, strict=True))) for sizes in zip(*shapes, strict=True))

    def _fits(self, wish: str) -> bool:
        """Whether a tensor may have this name: in ``launch``, step names are prefixes of their kernels' parameters."""
        return not clashes(wish, self.taken) and not any(wish.startswith(f"{step}_") for step in self._prefixes)

    def _free(self, wish: str) -> str:
        """A free name like ``wish``: ``h1``, ``h2``, … for ``h``; otherwise ``wish`` itself if it is free, or with a
        number."""
        numbers = range(1, 10_000)
        names = [wish] if wish != "h" else []
        name = next(n for n in (*names, *(f"{wish}{i}" for i in numbers)) if n not in self.taken)
        self.taken.add(name)
        return name


def _named(workload: Workload, inputs: Sequence[str], results: Sequence[str]) -> Workload:
    return replace(
        workload,
        inputs=tuple(replace(spec, name=name) for spec, name in zip(workload.inputs, inputs, strict=True)),
        outputs=tuple(replace(spec, name=name) for spec, name in zip(workload.outputs, results, strict=True)),
    )
