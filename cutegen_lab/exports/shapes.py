"""Shapes that a kernel serves, as in exported files."""

from __future__ import annotations

from typing import Any

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.problems.dtypes import TORCH


def shapes(workload: Workload, build: Build) -> dict[str, Any]:
    """A set of shapes for :class:`cutegen_lab.exports.carried_shapes.Served`."""
    return {
        "describes": plain_ascii(workload.describe()),
        "inputs": [_tensor(spec) for spec in workload.inputs],
        "outputs": [_tensor(spec) for spec in workload.outputs],
        "workspace": [_tensor(spec) for spec in build.plan.workspace],
    }


def torch_name(spec: TensorSpec) -> str:
    """Name of the tensor's element type in torch (``bfloat16``)."""
    return str(TORCH[spec.dtype]).removeprefix("torch.")


def plain_ascii(text: str) -> str:
    """``text`` made safe for any comment or docstring, of Python and of C."""
    text = text.encode("ascii", "backslashreplace").decode()
    for acts, harmless in (("\\", "/"), ('"', "'"), ("*/", "* /"), ("/*", "/ *"), ("??", "? ?")):
        text = text.replace(acts, harmless)
    return text


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    return {"dtype": torch_name(spec), "shape": list(spec.shape), "strides": list(spec.stride)}
