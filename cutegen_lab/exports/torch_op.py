"""A kernel as an operator of ``torch.library``: one module that needs torch and the GPU, and no compiler."""

from __future__ import annotations

import base64
import json
import textwrap
import zlib
from dataclasses import replace
from typing import Any

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import Workload
from cutegen_lab.exports.header import under
from cutegen_lab.exports.join_modules import joined
from cutegen_lab.exports.shapes import plain_ascii, shapes
from cutegen_lab.exports.subject import Subject

NAMESPACE = "cutegen"
_RUNTIME = (
    "cutegen_lab.exports.carried_shapes",
    "cutegen_lab.devices.cuda.launching",
    "cutegen_lab.exports.carried_operator",
)


def torch_op(subject: Subject) -> dict[str, bytes]:
    """The module. It serves the analyst's workloads and refuses other shapes; there is no autograd formula."""
    return {".py": under(subject.claims, operator_text(subject)).encode()}


def operator_text(subject: Subject) -> str:
    """The module without the comments above it."""
    arguments, outputs = subject.arguments, len(subject.problem.workload.outputs)
    tensors = ", ".join(f"Tensor {name}" for name in arguments)
    returned = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
    given, result = ", ".join(arguments), "[0]" if outputs == 1 else ""
    name, qualified = subject.name, f"{NAMESPACE}::{subject.name}_{subject.key}"
    kind = "torch.Tensor" if outputs == 1 else "list[torch.Tensor]"
    typed = ", ".join(f"{each}: torch.Tensor" for each in arguments)
    head, _, rest = joined(_RUNTIME).partition("\n")
    packed = textwrap.wrap(_packed(subject), 110, break_on_hyphens=False)
    return "\n".join(
        [
            f'"""{_docstring(subject, qualified)}"""',
            "",
            head,
            rest,
            "",
            "_OPERATOR = Operator(",
            *(f"    {line!r}" for line in packed),
            ")",
            "",
            "",
            f'@torch.library.custom_op("{qualified}", mutates_args=(), device_types="cuda", '
            f'schema="({tensors}) -> {returned}")',
            f"def {name}({typed}) -> {kind}:",
            f"    return _OPERATOR.call({given}){result}",
            "",
            "",
            f"@{name}.register_fake",
            f"def _fake({typed}) -> {kind}:",
            f"    return _OPERATOR.empty({given}){result}",
            "",
        ]
    )


def _docstring(subject: Subject, qualified: str) -> str:
    shapes = "\n".join(f"    {plain_ascii(workload.describe())}" for workload, _ in subject.builds)
    return (
        f"Operator ``{qualified}``: kernel {subject.candidate_id} of the cutegen-lab run {subject.run_id}.\n\n"
        f"It serves these inputs and outputs, and raises ValueError for others:\n\n{shapes}\n\n"
        f"It runs the machine code that was judged (artifact {subject.artifact.sha256}), for {subject.artifact.arch},\n"
        "without a compiler, on the current stream. Call it once before a CUDA graph is captured: the first call\n"
        "loads the machine code. torch.compile and torch.export can trace it. Sizes are fixed when it is\n"
        "traced: torch.compile traces again for other sizes, and torch.export refuses Dim() for them. It has\n"
        "no autograd formula: register one with register_autograd to train with it.\n"
    )


def _packed(subject: Subject) -> str:
    builds = [_build(workload, build) for workload, build in subject.builds]
    return base64.b85encode(zlib.compress(json.dumps(builds, sort_keys=True).encode(), 9)).decode()


def _build(workload: Workload, build: Build) -> dict[str, Any]:
    plan = replace(build, plan=replace(build.plan, launches=build.plan.one_call)).to_dict()["plan"]
    cubin = base64.b64encode(build.cubin).decode()
    return {**shapes(workload, build), "arch": build.arch, "launches": plan["launches"], "cubin": cubin}
