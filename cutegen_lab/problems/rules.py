"""Rules of a problem for its integers: cumulative lengths, page tables, ranges (``TensorSpec.rule``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.problems.dtypes import TORCH


def resolved(workload: Workload) -> Workload:
    """``workload`` with the bounds of rules computed from the sizes of inputs. Raises ProblemError."""
    shapes = {spec.name: spec.shape for spec in workload.inputs}
    return replace(workload, inputs=tuple(_bounded(spec, shapes) for spec in workload.inputs))


def _bounded(spec: TensorSpec, shapes: dict[str, tuple[int, ...]]) -> TensorSpec:
    if not spec.rule:
        return spec
    below = spec.below
    if spec.bound is not None:
        name, dim = spec.bound
        if dim >= len(shapes.get(name, ())):
            known = ", ".join(f"{name}{list(shape)}" for name, shape in shapes.items())
            raise ProblemError(f"{spec.name}: there is no {name}[{dim}]", f"The inputs are {known}.")
        below = shapes[name][dim]
    return replace(spec, below=below, beside=())


def impossible(workload: Workload) -> str:
    """Why no values satisfy the rules at these sizes; empty if some do."""
    for spec in workload.inputs:
        most = torch.iinfo(TORCH[spec.dtype]).max if spec.rule else 0
        if spec.rule and (spec.below < 1 or spec.below > most):
            return f"{spec.name}: {spec.dtype.value} cannot hold a non-empty range [0, {spec.below})"
        if spec.rule == "sorted" and (not spec.shape or spec.shape[-1] < 2):
            return f"{spec.name}: sorted numbers from 0 to {spec.below} need at least two elements"
        if spec.rule == "distinct" and spec.numel > spec.below:
            return f"{spec.name}: {spec.numel} distinct numbers below {spec.below} are too many"
    return ""


def sample(spec: TensorSpec) -> torch.Tensor:
    """The simplest values that satisfy ``spec``'s rule: lengths as equal as possible, pages in order."""
    if spec.rule == "sorted" and spec.shape[-1:] > (1,):
        ends = torch.arange(spec.shape[-1]) * spec.below // (spec.shape[-1] - 1)
        return ends.expand(spec.shape).clone()
    return torch.arange(spec.numel).remainder(max(spec.below, 1)).view(spec.shape)


def checked(workloads: Sequence[Workload]) -> tuple[Workload, ...]:
    """``workloads``, resolved. Raises ProblemError for rules that cannot be satisfied."""
    found = tuple(resolved(workload) for workload in workloads)
    for workload in found:
        if why := impossible(workload):
            raise ProblemError(why, "Change the rule, or the sizes.")
    return found
