"""Kernels of another hand, and programs that wait for clusters, compiled for ``foreign_on_gpu``.

    python -m benchmarks.perfmodel.foreign_cases FOLDER ARCHIVE.tar.xz [CUTLASS]   (needs the DSL; no GPU; two minutes)
    python -m benchmarks.perfmodel.foreign_cases FOLDER ARCHIVE.tar.xz --only-blind

``foreign_kernels/p*.py.txt`` were written by a language model from the candidate contract alone. Times of their default
configs were known when the time model was written; the other configs were not timed. Each comes in several configs of
the keywords of its ``launch``, the first its own default. CUTLASS is a checkout of NVIDIA/cutlass: its examples that
``foreign_kernels/nvidia`` names are taken from there, each with the ``launch`` that stands beside its tensors.
``foreign_kernels/blind`` were written without a look at the time model, after v8; v9 was made in sight of them. More
configs, and later kernels, are in ``foreign_spaces``.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, command_line, for_each, read_json
from benchmarks.perfmodel.cluster_waits import programs
from benchmarks.perfmodel.counters_cases import Case, store_timed, write
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.problems import read_text
from cutegen_lab.problems.rules import resolved

KERNELS = ROOT / "benchmarks/foreign_kernels"
_MAIN = 'if __name__ == "__main__":'


@dataclass(frozen=True)
class Foreign:
    """``configs`` differ from the kernel's defaults in what they name."""

    name: str
    arguments: str
    body: str
    inputs: str
    configs: Sequence[Mapping[str, int]]

    @property
    def problem(self) -> Problem:
        text = f"def reference({self.arguments}):\n    {self.body}\n"
        return read_text(text, name=self.name, inputs_text=self.inputs)

    @property
    def source(self) -> str:
        return (KERNELS / f"{self.name}.py.txt").read_text()


def _each(names: str, *values: tuple[int, ...]) -> tuple[Mapping[str, int], ...]:
    return tuple(dict(zip(names.split(), row, strict=True)) for row in values)


_ROWS = _each("threads vec", (256, 8), (128, 8), (512, 8), (256, 4), (256, 2))
FOREIGN = (
    Foreign("p1_gelu_sigmoid", "x, gate", "return F.gelu(x, approximate='tanh') * torch.sigmoid(gate)",
            "x: bf16[4096,8192], gate: bf16[4096,8192]", (*_ROWS, {"threads": 64, "vec": 8})),
    Foreign("p2_softmax", "x", "return torch.softmax(x, -1)", "x: bf16[4096,8192]",
            (*_ROWS, {"threads": 1024, "vec": 8})),
    Foreign("p3_rmsnorm", "x, w", "return F.rms_norm(x, w.shape, w, 1e-6)", "x: f32[2048,4096], w: f32[4096]",
            _each("threads vec", (256, 4), (128, 4), (512, 4), (1024, 4), (256, 2), (256, 1))),
    Foreign("p4_colsum", "x", "return x.sum(0)", "x: f32[4096,4096]",
            _each("cols rows", (32, 64), (64, 32), (128, 16), (32, 128), (32, 32), (16, 64))),
    Foreign("p5_masked_cumsum", "x, mask", "return torch.cumsum(torch.where(mask, x, 0.0), 1)",
            "x: f32[1024,4096], mask: bool[1024,4096]", _each("vec", (4,), (8,), (16,), (32,))),
    Foreign("p6_gemm_mma", "a, b", "return a @ b", "a: bf16[2048,2048], b: bf16[2048,2048]",
            _each("bM bN bK stages", (128, 128, 32, 4), (128, 128, 32, 2), (128, 64, 32, 4), (64, 128, 32, 4),
                  (64, 64, 32, 3), (64, 64, 32, 2))),
    Foreign("p7_gemm_wgmma", "a, b", "return a @ b", "a: bf16[2048,2048], b: bf16[2048,2048]",
            _each("bM bN bK stages", (128, 256, 64, 4), (128, 256, 64, 2), (128, 128, 64, 6), (128, 128, 64, 2),
                  (128, 64, 64, 6), (128, 64, 64, 2))),
    Foreign("p8_ln_bwd", "dy, x, w, mean, rstd", """h = (x.float() - mean[:, None]) * rstd[:, None]
    g = dy.float() * w.float()
    c1, c2 = g.mean(-1, keepdim=True), (g * h).mean(-1, keepdim=True)
    return ((g - c1 - h * c2) * rstd[:, None]).to(x.dtype)""",
            "dy: bf16[4096,4096], x: bf16[4096,4096], w: bf16[4096], mean: f32[4096], rstd: f32[4096]", _ROWS),
)  # fmt: skip


def cases() -> Iterator[Case]:
    for foreign in FOREIGN:
        workload, source = foreign.problem.workload, foreign.source
        for number, config in enumerate(foreign.configs):
            yield Case(f"{foreign.name}-{number}", foreign.name, workload, source, dict(config), True, True, True)


def blind() -> Iterator[Case]:
    for path in sorted((KERNELS / "blind").glob("*.json")):
        yield from _described(path, read_json(path), path.with_suffix(".py.txt").read_text())


def nvidia(checkout: Path) -> Iterator[Case]:
    for path in sorted((KERNELS / "nvidia").glob("*.json")):
        said = read_json(path)
        example = (checkout / said["ref"].removeprefix("NVIDIA/cutlass, ")).read_text()
        for old, new in said.get("replace", {}).items():  # what the contract asks for: no torch, launches on the stream
            assert old in example, f"{path.name}: {old!r} is not in this version of the example"
            example = example.replace(old, new)
        yield from _described(path, said, example.partition(_MAIN)[0] + path.with_suffix(".launch.txt").read_text())


def described(path: Path, said: Mapping[str, Any], source: str) -> Case:
    """The kernel that ``path`` describes, without a config."""
    inputs, outputs = (tuple(TensorSpec.parse(t) for t in said[key]) for key in ("inputs", "outputs"))
    return Case(path.stem, path.stem, resolved(Workload("main", inputs, outputs)), source, {}, True, True, True)


def _described(path: Path, said: Mapping[str, Any], source: str) -> Iterator[Case]:
    for number, config in enumerate(said["configs"]):
        yield replace(described(path, said, source), name=f"{path.stem}-{number}", config=config)


def main(folder: Path, archive: Path, cutlass: Path | None = None, *, only_blind: bool = False) -> None:
    every = blind() if only_blind else chain(cases(), nvidia(cutlass) if cutlass else ())
    written = for_each(every, folder, lambda case, compiler: write(case, folder, compiler, gated=False))
    if not only_blind:
        store_timed(folder, programs())
    with tarfile.open(archive, "w:xz") as packed:
        for path in sorted(folder.glob("*.json")):
            packed.add(path, path.name)
    print(f"{sum(written)} of {len(written)} kernels; {archive}: {archive.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    command_line(main)
