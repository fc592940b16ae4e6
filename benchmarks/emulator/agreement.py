"""What the emulator answers, to be compared with a GPU by ``agreement_on_gpu``.

    python -m benchmarks.emulator.agreement FOLDER [--also DIR]   (needs the DSL; no GPU)

Compiles and runs on the emulator every kernel of ``tests/honest``, templates in further configs, and kernels that are
not this project's: ``DIR/NAME.py``, each with ``DIR/NAME.json`` (its tensors and whose it is, {"inputs": [...],
"outputs": [...], "ref": "..."}). Each runs on normal values and on zeros and ones, whose sums are exact in any order.
Writes ``FOLDER/NAME.npz``: the artifact, the inputs and the outputs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import command_line, compiled, for_each, read_json
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.emulator import Options, Order
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.execution.buffers import Buffers
from cutegen_lab.problems import read_text
from tests.honest import corpus, generated

DRAWS = ("normal", "bits")
POISON = 0xFF
FURTHER = {
    "generated_softmax": ({"vec": 2}, {"threads_per_row": 32}, {"rows_per_block": 4}, {"loads": 2}),
    "generated_rms_norm": ({"vec": 2}, {"threads_per_row": 128}, {"rows_per_block": 2}),
    "generated_layer_norm": ({"threads_per_row": 32}, {"rows_per_block": 4}),
    "generated_column_sum": ({"vec": 1}, {"threads": 64}, {"slices": 4}),
    "generated_gelu_gate": ({"vec": 2}, {"threads": 64}, {"loads": 2}),
    "generated_silu_and_mul": ({"vec": 1}, {"threads": 256}),
}


@dataclass(frozen=True)
class Kernel:
    """``ref`` says where the text is from, ``deterministic`` is the problem's word for whether the order of atomics may
    show."""

    name: str
    source: str
    workload: Workload
    ref: str
    config: Config = field(default_factory=dict)
    deterministic: bool = True
    gated: bool = True


def ours() -> Iterator[Kernel]:
    for found in corpus.corpus():
        problem = read_text(found.problem, name=found.name, inputs_text=found.inputs)
        ref = "template" if found.name in generated.CASES else f"tests/honest/kernels/{found.name}.py"
        yield Kernel(found.name, found.source, problem.workload, ref, deterministic=problem.deterministic)
    for name, configs in FURTHER.items():
        case = generated.CASES[name]
        problem = read_text(case.problem, name=name, inputs_text=case.inputs)
        for config in configs:
            label = "_".join([name, *(f"{key}{value}" for key, value in config.items())])
            source = generated.write(label, replace(case, config={**case.config, **config}))
            yield Kernel(label, source, problem.workload, "template")


def others(folder: Path) -> Iterator[Kernel]:
    for path in sorted(folder.glob("*.json")):
        said = read_json(path)
        inputs, outputs = (tuple(TensorSpec.parse(t) for t in said[key]) for key in ("inputs", "outputs"))
        workload, ref = Workload("main", inputs, outputs), said.get("ref", "")
        yield Kernel(path.stem, path.with_suffix(".py").read_text(), workload, ref, gated=False)


def export(kernel: Kernel, folder: Path, compiler: CageCompiler) -> str | None:
    """What went wrong, or None."""
    try:
        artifact = compiled(compiler, kernel.source, kernel.config, [kernel.workload], gated=kernel.gated)
        if not isinstance(artifact, Artifact):
            return f"{kernel.name}: {artifact.verdict.value}, {artifact.reason[:200]}"
        build = artifact.builds[kernel.workload.name]
        for seed, distribution in enumerate(DRAWS):
            if fault := _record(kernel, build, distribution, seed, folder):
                return f"{kernel.name} on {distribution}: {fault}"
    except Exception as error:
        return f"{kernel.name}: {type(error).__name__}: {error}"[:300]
    return None


def _record(kernel: Kernel, build: Build, distribution: str, seed: int, folder: Path) -> str | None:
    inputs = draw(kernel.workload, distribution, seed)
    buffers = Buffers(kernel.workload, build, inputs, POISON)
    raw = {f"before{i}": np.array(view) for i, view in enumerate(buffers.views[: len(inputs)])}
    device = EmulatorDevice(Options(races=False, order=Order()))
    done = device.execute(buffers.build, buffers.tensors, buffers.views, threading.Event())
    if done.fault is not None:
        return str(done.fault)
    raw |= {f"after{i}": np.array(buffers.views[len(inputs) + i]) for i in range(len(buffers.outputs))}
    said: dict[str, Any] = {
        "name": kernel.name, "ref": kernel.ref, "draw": distribution, "deterministic": kernel.deterministic,
        "build": build.to_dict(),
        "inputs": [spec.to_dict() for spec in kernel.workload.inputs],
        "outputs": [spec.to_dict() for spec in kernel.workload.outputs], "emulator_seconds": round(done.seconds, 3),
    }  # fmt: skip
    np.savez_compressed(folder / f"{kernel.name}-{distribution}.npz", text=np.array(json.dumps(said)), **raw)
    return None


def main(folder: Path, *, also: Path | None = None) -> None:
    kernels = [*ours(), *(others(also) if also else ())]
    found = for_each(kernels, folder, lambda kernel, compiler: export(kernel, folder, compiler))
    wrong = [said for said in found if said]
    print(f"{len(kernels) - len(wrong)} of {len(kernels)} kernels in {folder}", *wrong, sep="\n")


if __name__ == "__main__":
    command_line(main)
