"""The GEMM family beside cuBLAS: right, and how fast, for many shapes and configs.

    python -m benchmarks.gemm_on_gpu prepare FOLDER [PART ...]     (needs the DSL; no GPU)
    python -m benchmarks.gemm_on_gpu run FOLDER OUT.json [PART ...]    (a GPU, and torch; prints a table)

``prepare`` writes ``FOLDER/NAME.json`` for each shape (whose name has a PART in it): the problem, and the artifacts of
the family's default config and of others. ``run`` compares every result with float32's (a bf16 result's own rounding is
1.7e-3) and takes all configs of a shape in turns with eager PyTorch, cold, by the product's own stopwatch.
"""

from __future__ import annotations

import argparse
import json
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import torch

from benchmarks.machine import about
from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.stopwatch import Stopwatch, rotation
from cutegen_lab.core.verdict import Fault
from cutegen_lab.devices.cuda import CudaDevice
from cutegen_lab.judge.turns import Effort, Turns
from cutegen_lab.problems import read_text
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.problems.tensors import laid_out

ARCH = "sm_90a"
EFFORT = Effort(half_width=0.003, seconds=2.0, min_rounds=8, warm_up_seconds=0.1)
EMPTY: Mapping[str, str] = {}
MOST_BYTES = 1 << 28  # of a result that is checked for every config; of a larger one, the default's alone


@dataclass(frozen=True)
class Shape:
    name: str
    expression: str
    inputs: str
    mnkl: tuple[int, int, int, int]

    @property
    def reference(self) -> str:
        names = ", ".join(part.split(":")[0].strip() for part in self.inputs.split("], "))
        return f"def reference({names}):\n    return {self.expression}\n"


def _nn(name: str, m: int, n: int, k: int) -> Shape:
    return Shape(name, "a @ b", f"a: bf16[{m},{k}], b: bf16[{k},{n}]", (m, n, k, 1))


def _linear(name: str, m: int, n: int, k: int) -> Shape:
    return Shape(name, "F.linear(a, b)", f"a: bf16[{m},{k}], b: bf16[{n},{k}]", (m, n, k, 1))


def _batched(name: str, batches: int, m: int, n: int, k: int) -> Shape:
    inputs = f"a: bf16[{batches},{m},{k}], b: bf16[{batches},{k},{n}]"
    return Shape(name, "torch.bmm(a, b)", inputs, (m, n, k, batches))


def _gelu(name: str, m: int, n: int, k: int) -> Shape:
    inputs = f"a: bf16[{m},{k}], b: bf16[{n},{k}], bias: bf16[{n}]"
    return Shape(name, "F.gelu(F.linear(a, b, bias))", inputs, (m, n, k, 1))


SHAPES = (
    *(_nn(f"square-{n}", n, n, n) for n in (512, 1024, 2048, 4096, 8192, 16384)),
    _linear("skinny-64x4096x4096", 64, 4096, 4096),
    _linear("skinny-256x8192x8192", 256, 8192, 8192),
    _nn("skinny-8192x128x8192", 8192, 128, 8192),
    _linear("linear-4096x14336x4096", 4096, 14336, 4096),
    _nn("ragged-1000x1000x1000", 1000, 1000, 1000),
    _nn("ragged-3000x5000x2000", 3000, 5000, 2000),
    _linear("ragged-4096x1111x4096", 4096, 1111, 4096),
    _batched("batched-16x1024x1024x1024", 16, 1024, 1024, 1024),
    _batched("batched-64x512x512x128", 64, 512, 512, 128),
    _batched("batched-8x2048x2048x2048", 8, 2048, 2048, 2048),
)
FUSED = (
    _gelu("fused-bias_gelu-8192", 8192, 8192, 8192),
    _gelu("fused-bias_gelu-4096x14336x4096", 4096, 14336, 4096),
    Shape("fused-residual-4096", "a @ b + r", "a: bf16[4096,4096], b: bf16[4096,4096], r: bf16[4096,4096]",
          (4096, 4096, 4096, 1)),
)  # fmt: skip


PLAIN = (  # by the plain kernel, whose config is none
    Shape("plain-f32-2048", "a @ b", "a: f32[2048,2048], b: f32[2048,2048]", (2048, 2048, 2048, 1)),
    _nn("plain-1001x1003x1005", 1001, 1003, 1005),
)


# --- where the DSL is -------------------------------------------------------------------------------------------------


def _config(tile: str, cluster: str = "1x1", schedule: str = "cooperative", **others: int | str) -> dict[str, Any]:
    tile_m, tile_n, *tile_k = map(int, tile.split("x"))
    cluster_m, cluster_n = map(int, cluster.split("x"))
    return {"tile_m": tile_m, "tile_n": tile_n, "tile_k": (*tile_k, 64)[0], "cluster_m": cluster_m,
            "cluster_n": cluster_n, "stages": 8, "schedule": schedule, "raster": "m", "group": 8, **others}  # fmt: skip


LARGE = (
    _config("128x256", "2x1"), _config("128x256"), _config("128x128"), _config("256x128", "2x1"),
    _config("128x128", "1x1", "pingpong"),
)  # fmt: skip
SMALL = (
    _config("64x32x128"), _config("64x64x128"), _config("64x128x128"), _config("64x128x128", "2x1"), _config("128x128"),
    _config("128x256"),
)  # fmt: skip


def prepare(folder: Path, parts: Sequence[str]) -> None:
    from cutegen_lab.compile import CageCompiler

    folder.mkdir(parents=True, exist_ok=True)
    with CageCompiler(folder / "cache") as compiler, ThreadPoolExecutor(2) as threads:
        for shape in (*SHAPES, *FUSED, *PLAIN):
            if parts and not any(part in shape.name for part in parts):
                continue
            built = list(threads.map(lambda text: _compiled(compiler, shape, *text), _texts(shape)))  # noqa: B023
            found = [b for b in built if b is not None]
            data = {"name": shape.name, "problem": shape.reference, "inputs": shape.inputs, "mnkl": shape.mnkl}
            (folder / f"{shape.name}.json").write_text(json.dumps({**data, "builds": found}))
            print(f"{shape.name}: {len(found)} configs", flush=True)


def _texts(shape: Shape) -> Iterator[tuple[str, dict[str, Any]]]:
    """The default's text and config, then others'."""
    from cutegen_lab.templates.reader import read
    from cutegen_lab.templates.registry import family_for

    problem = read_text(shape.reference, name=shape.name, inputs_text=shape.inputs)
    graph = read(problem)
    family = family_for(graph)
    default = dict(family.default_config(graph, problem.workload))
    m, n, _, batches = shape.mnkl
    few_tiles = math.ceil(m / 128) * math.ceil(n / 256) * batches < 264
    others = () if shape in PLAIN else SMALL if few_tiles else LARGE
    for config in [default, *(c for c in others if c != default)]:
        yield family.write(problem, graph, config), config


def _compiled(compiler: Any, shape: Shape, source: str, config: dict[str, Any]) -> dict[str, Any] | None:
    problem = read_text(shape.reference, name=shape.name, inputs_text=shape.inputs)
    built = compiler.compile(source, {}, [problem.workload], ARCH, lambda line: None, threading.Event())
    if not isinstance(built, Artifact):
        print(f"{shape.name} {config}: {built.verdict.value}, {built.reason[:200]}", flush=True)
        return None
    return {"config": config, "build": built.builds[problem.workload.name].to_dict() | {"ptx": ""}}


# --- on the GPU -------------------------------------------------------------------------------------------------------


def run(folder: Path, out: Path, parts: Sequence[str]) -> None:
    device, results = CudaDevice(), []
    started = monotonic()
    paths = [path for part in parts or [""] for path in sorted(folder.glob("*.json")) if part in path.stem]
    for path in dict.fromkeys(paths):
        result = measure(device, json.loads(path.read_text()))
        results.append(result)
        print(f"[{monotonic() - started:.0f} s] {_line(result)}", flush=True)
        out.write_text(json.dumps(about(device.name) | {"shapes": results}, indent=1) + "\n")
    device.close()


def measure(device: CudaDevice, case: dict[str, Any], faults: Mapping[str, str] = EMPTY) -> dict[str, Any]:
    """Times (µs), errors and configs of one shape; ``eager`` is PyTorch. Configs in ``faults`` are left out."""
    errors: dict[str, float | str] = {**faults}
    problem = read_text(case["problem"], name=case["name"], inputs_text=case["inputs"])
    workload = problem.workload
    torch.manual_seed(0)
    drawn = [torch.randn(t.cosize).to(TORCH[t.dtype]) for t in workload.inputs]
    views = [memoryview(t.view(torch.uint8).numpy()) for t in drawn]
    watch = device.stopwatch(workload.tensors, views, threading.Event())
    if isinstance(watch, Fault):
        return {"name": case["name"], "fault": str(watch)}
    configs = {f"c{number}": entry["config"] for number, entry in enumerate(case["builds"])}
    names = []
    with closing(watch):
        for number, (name, entry) in enumerate(zip(configs, case["builds"], strict=True)):
            if name in errors:
                continue
            added = watch.add_build(name, Build.from_dict(entry["build"]))
            if isinstance(added, Fault):  # it took the device's worker with it
                return measure(device, case, {**errors, name: str(added)})
            if number == 0 or workload.outputs[0].nbytes <= MOST_BYTES:
                errors[name] = _error(watch, name, number, problem, drawn)
            names.append(name)
        for kind in ("eager", "compile") if "fused" in case["name"] else ("eager",):
            if not isinstance(watch.add_reference(kind, problem, kind), Fault):  # type: ignore[arg-type]
                names.append(kind)
        taken = Turns(watch, names, iter(range(100, 1 << 30)).__next__, threading.Event()).converge(EFFORT)
    if isinstance(taken, Fault):
        return {"name": case["name"], "fault": str(taken)}
    return {
        "name": case["name"], "mnkl": case["mnkl"], "configs": configs, "errors": errors,
        "times_us": {name: round(median(times), 3) for name, times in taken.times_us.items()},
        "rounds": len(next(iter(taken.times_us.values()))),
    }  # fmt: skip


def _error(watch: Stopwatch, name: str, seed: int, problem: Any, drawn: Sequence[torch.Tensor]) -> float | str:
    """Relative to float32's result, of the last call of a sample."""
    sampled = watch.sample(name, "cold", 1, seed)
    if isinstance(sampled, Fault):
        return str(sampled)
    got = watch.outputs(name, 0)
    if isinstance(got, Fault):
        return str(got)
    workload = problem.workload
    inputs = [
        laid_out(torch.roll(t.cuda(), rotation(seed, 0, i, spec.cosize)).view(torch.uint8), spec).float()
        for i, (t, spec) in enumerate(zip(drawn, workload.inputs, strict=True))
    ]
    namespace: dict[str, Any] = {}
    exec("import torch\nimport torch.nn.functional as F\n" + problem.source, namespace)  # noqa: S102 - our own text
    expected = namespace["reference"](*inputs)
    result = torch.frombuffer(got[0], dtype=TORCH[workload.outputs[0].dtype]).cuda().reshape(expected.shape).float()
    return float((result - expected).norm() / expected.norm())


def _line(result: dict[str, Any]) -> str:
    if "fault" in result:
        return f"{result['name']}: {result['fault']}"
    times, (m, n, k, batches) = dict(result["times_us"]), result["mnkl"]
    flops = 2e-6 * m * n * k * batches
    eager = times["eager"]
    best = min((t, name) for name, t in times.items() if name in result["configs"])
    each = " ".join(f"{name}={eager / t:.3f}" for name, t in times.items() if name != "eager")
    wrong = {name: e for name, e in result["errors"].items() if isinstance(e, str) or not e < 3e-3}
    return (
        f"{result['name']}: eager {eager:.1f} µs ({flops / eager:.0f} TFLOP/s), default {eager / times['c0']:.3f}, "
        f"best {eager / best[0]:.3f} ({flops / best[0]:.0f}) {result['configs'][best[1]]}; {each}; "
        f"{f'WRONG {wrong}' if wrong else 'right'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("verb", choices=("prepare", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("rest", nargs="*")
    arguments = parser.parse_args()
    if arguments.verb == "prepare":
        prepare(arguments.folder, arguments.rest)
    else:
        run(arguments.folder, Path(arguments.rest[0]), arguments.rest[1:])


if __name__ == "__main__":
    main()
