"""The GEMM family beside cuBLAS: right, and how fast, for many shapes and configs.

    python -m benchmarks.gemm_on_gpu prepare FOLDER [PART ...]     (needs the DSL; no GPU)
    python -m benchmarks.gemm_on_gpu run FOLDER OUT.json [PART ...]    (a GPU, and torch; prints a table)

``prepare`` writes ``FOLDER/NAME.json`` for each shape (whose name has a PART in it): the problem, and the artifacts of
the family's default config and of others. ``run`` compares every result with float32's (a bf16 result's own rounding is
1.7e-3), one of fp32 operands with float64's and beside eager's own error, and takes all configs of a shape in turns
with eager PyTorch (fused ones: torch.compile too), cold, by the product's own stopwatch.
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

from cutegen_lab.bench.case import problem_of
from cutegen_lab.bench.record import about
from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.stopwatch import Stopwatch, rotation
from cutegen_lab.core.verdict import Fault
from cutegen_lab.devices.cuda import CudaDevice
from cutegen_lab.judge.turns import Effort, Turns
from cutegen_lab.problems import Reference, read_text
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.problems.tensors import laid_out

ARCH = "sm_90a"
EFFORT = Effort(half_width=0.003, seconds=1.5, min_rounds=8, warm_up_seconds=0.1)
EMPTY: Mapping[str, str] = {}
MOST_BYTES = 1 << 28  # of a result that is checked for every config; of a larger one, the default's alone


@dataclass(frozen=True)
class Shape:
    name: str
    expression: str
    inputs: str
    mnkl: tuple[int, int, int, int]

    @property
    def problem(self) -> Problem:
        return problem_of(self.name, self.expression, self.inputs)


def _nn(name: str, m: int, n: int, k: int, dtype: str = "bf16") -> Shape:
    return Shape(name, "a @ b", f"a: {dtype}[{m},{k}], b: {dtype}[{k},{n}]", (m, n, k, 1))


def _linear(name: str, m: int, n: int, k: int, dtype: str = "bf16") -> Shape:
    return Shape(name, "F.linear(a, b)", f"a: {dtype}[{m},{k}], b: {dtype}[{n},{k}]", (m, n, k, 1))


def _batched(name: str, batches: int, m: int, n: int, k: int, dtype: str = "bf16") -> Shape:
    inputs = f"a: {dtype}[{batches},{m},{k}], b: {dtype}[{batches},{k},{n}]"
    return Shape(name, "torch.bmm(a, b)", inputs, (m, n, k, batches))


def _gelu(name: str, m: int, n: int, k: int) -> Shape:
    inputs = f"a: bf16[{m},{k}], b: bf16[{n},{k}], bias: bf16[{n}]"
    return Shape(f"fused-gelu-{name}", "F.gelu(F.linear(a, b, bias))", inputs, (m, n, k, 1))


def _swiglu(name: str, m: int, n: int, k: int) -> Shape:
    inputs = f"x: bf16[{m},{k}], g: bf16[{n},{k}], u: bf16[{n},{k}]"
    return Shape(f"fused-swiglu-{name}", "F.silu(F.linear(x, g)) * F.linear(x, u)", inputs, (m, n, 2 * k, 1))


def _residual(m: int, n: int, k: int) -> Shape:
    inputs = f"a: bf16[{m},{k}], b: bf16[{n},{k}], r: bf16[{m},{n}]"
    return Shape(f"fused-residual-{m}x{n}x{k}", "F.linear(a, b) + r", inputs, (m, n, k, 1))


def _scaled(m: int, n: int, k: int, fast: bool = False) -> Shape:
    inputs = f"a: f8e4m3fn[{m},{k}], b: f8e4m3fn[{n},{k}], sa: f32[1], sb: f32[1]"
    options = f"out_dtype=torch.bfloat16, use_fast_accum={fast}"
    name = f"f8-{'fast' if fast else 'scaled'}-{m}x{n}x{k}"
    return Shape(name, f"torch._scaled_mm(a, b.t(), sa, sb, {options})", inputs, (m, n, k, 1))


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
FP32 = (
    *(_nn(f"f32-square-{n}", n, n, n, "f32") for n in (512, 1024, 2048, 4096, 8192)),
    _linear("f32-skinny-256x8192x8192", 256, 8192, 8192, "f32"),
    _nn("f32-ragged-1001x1003x1005", 1001, 1003, 1005, "f32"),
    _batched("f32-batched-16x1024x1024x1024", 16, 1024, 1024, 1024, "f32"),
)
LONG = (
    _linear("long-512x512x16384", 512, 512, 16384),
    _linear("long-64x4096x16384", 64, 4096, 16384),
    _nn("long-1024x256x32768", 1024, 256, 32768),
    _linear("long-16x4096x11008", 16, 4096, 11008),
    _nn("long-f32-512x512x16384", 512, 512, 16384, "f32"),
)
GATED = (  # tokens, intermediate size, hidden size
    _swiglu("llama_3_8b-4096x14336x4096", 4096, 14336, 4096),
    _swiglu("qwen_2.5_7b-4096x18944x3584", 4096, 18944, 3584),
    _swiglu("qwen_2.5_1.5b-8192x8960x1536", 8192, 8960, 1536),
)
FUSED = (
    _gelu("gpt_2-16384x3072x768", 16384, 3072, 768),
    _gelu("bert_large-16384x4096x1024", 16384, 4096, 1024),
    _gelu("vit_h-16448x5120x1280", 16448, 5120, 1280),
    _gelu("4096x14336x4096", 4096, 14336, 4096),
    _gelu("8192", 8192, 8192, 8192),
    Shape("fused-residual-4096", "a @ b + r", "a: bf16[4096,4096], b: bf16[4096,4096], r: bf16[4096,4096]",
          (4096, 4096, 4096, 1)),
    _residual(4096, 4096, 4096),
    _residual(4096, 4096, 11008),
    _residual(8192, 4096, 4096),
    _residual(16384, 768, 3072),
)  # fmt: skip
F8 = (  # PyTorch's fast sums are not promoted
    _scaled(2048, 2048, 2048),
    _scaled(4096, 4096, 4096),
    _scaled(4096, 4096, 4096, fast=True),
    _scaled(4096, 14336, 4096),
    _scaled(8192, 8192, 8192),
    _scaled(8192, 8192, 8192, fast=True),
)
ODD = (_nn("odd-1001x1003x1005", 1001, 1003, 1005), _linear("odd-4095x4097x4099", 4095, 4097, 4099))


# --- where the DSL is -------------------------------------------------------------------------------------------------


def _config(tile: str, cluster: str = "1x1", schedule: str = "cooperative", **others: int | str) -> dict[str, Any]:
    tile_m, tile_n, *tile_k = map(int, tile.split("x"))
    cluster_m, cluster_n = map(int, cluster.split("x"))
    return {"tile_m": tile_m, "tile_n": tile_n, "tile_k": (*tile_k, 64)[0], "cluster_m": cluster_m,
            "cluster_n": cluster_n, "stages": 8, "schedule": schedule, "raster": "m", "group": 8, "split_k": 1,
            **others}  # fmt: skip


LARGE = (
    _config("128x256", "2x1"), _config("128x256"), _config("128x128"), _config("256x128", "2x1"),
    _config("128x128", "1x1", "pingpong"),
)  # fmt: skip
SMALL = (
    _config("64x32x128"), _config("64x64x128"), _config("64x128x128"), _config("64x128x128", "2x1"), _config("128x128"),
    _config("128x256"),
)  # fmt: skip


EPILOGUE = (
    _config("128x256", "2x1"), _config("128x128"), _config("128x128", "1x1", "pingpong"),
    _config("128x128", "2x1", "pingpong"), _config("64x256", "1x1", "pingpong"),
)  # fmt: skip
PAIRED = (
    _config("128x128"), _config("128x128", "2x1"), _config("256x64"), _config("64x128", "1x1", "pingpong"),
)  # fmt: skip
HALVED = (
    _config("128x128"), _config("64x128", "1x1", "pingpong"), _config("64x64"), _config("64x32"),
)  # fmt: skip
IN_PARTS = (
    _config("128x128", split_k=8), _config("128x128", split_k=4), _config("64x128x128", split_k=4),
    _config("64x64x128", split_k=2), _config("64x64x128", split_k=4),
)  # fmt: skip
EIGHT_BITS = (
    _config("128x128x128"), _config("128x128x128", "2x1"), _config("128x192x128"), _config("128x192x128", "2x1"),
    _config("64x128x128"), _config("64x128x128", "1x1", "pingpong"),
)  # fmt: skip
GROUPS = ((SHAPES, None), (FP32, HALVED), (LONG, IN_PARTS), (GATED, PAIRED), (FUSED, EPILOGUE), (F8, EIGHT_BITS),
          (ODD, LARGE))  # fmt: skip


def prepare(folder: Path, parts: Sequence[str]) -> None:
    from cutegen_lab.compile import CageCompiler

    folder.mkdir(parents=True, exist_ok=True)
    with CageCompiler(folder / "cache") as compiler, ThreadPoolExecutor(2) as threads:
        for shape, others in ((shape, others) for shapes, others in GROUPS for shape in shapes):
            if parts and not any(part in shape.name for part in parts):
                continue
            texts = _texts(shape, others)
            built = list(threads.map(lambda text: _compiled(compiler, shape, *text), texts))  # noqa: B023
            found = [b for b in built if b is not None]
            data = {"name": shape.name, "problem": shape.problem.source, "inputs": shape.inputs, "mnkl": shape.mnkl}
            (folder / f"{shape.name}.json").write_text(json.dumps({**data, "builds": found}))
            print(f"{shape.name}: {len(found)} configs", flush=True)


def _texts(shape: Shape, others: Sequence[dict[str, Any]] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The default's text and config, then others'."""
    from cutegen_lab.templates.reader import read
    from cutegen_lab.templates.registry import family_for

    problem = shape.problem
    graph = read(problem)
    family = family_for(graph)
    default = dict(family.default_config(graph, problem.workload))
    m, n, _, batches = shape.mnkl
    few_tiles = math.ceil(m / 128) * math.ceil(n / 256) * batches < 264
    others = (SMALL if few_tiles else LARGE) if others is None else others
    for config in [default, *(c for c in others if c != default and not family.why_not(graph, c))]:
        yield family.write(problem, graph, config), config


def _compiled(compiler: Any, shape: Shape, source: str, config: dict[str, Any]) -> dict[str, Any] | None:
    problem = shape.problem
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
    errors: dict[str, Any] = {**faults}
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
        if workload.inputs[0].dtype is DType.F32:
            errors["eager"] = _eager_error(problem, drawn)
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


def _error(watch: Stopwatch, name: str, seed: int, problem: Problem, drawn: Sequence[torch.Tensor]) -> float | str:
    """Relative to the result of higher precision, of the last call of a sample."""
    sampled = watch.sample(name, "cold", 1, seed)
    if isinstance(sampled, Fault):
        return str(sampled)
    got = watch.outputs(name, 0)
    if isinstance(got, Fault):
        return str(got)
    workload = problem.workload
    inputs = [
        laid_out(
            torch.roll(t.cuda().view(_BITS[t.itemsize]), rotation(seed, 0, i, spec.cosize)).view(torch.uint8), spec
        )
        for i, (t, spec) in enumerate(zip(drawn, workload.inputs, strict=True))
    ]
    expected = _result(problem, inputs, exact=True)
    result = torch.frombuffer(got[0], dtype=TORCH[workload.outputs[0].dtype]).cuda().reshape(expected.shape)
    return _distance(result, expected)


def _eager_error(problem: Problem, drawn: Sequence[torch.Tensor]) -> float:
    inputs = [laid_out(t.cuda().view(torch.uint8), s) for t, s in zip(drawn, problem.workload.inputs, strict=True)]
    return _distance(_result(problem, inputs), _result(problem, inputs, exact=True))


def _result(problem: Problem, inputs: Sequence[torch.Tensor], exact: bool = False) -> torch.Tensor:
    """The reference's; ``exact``: of 16-bit inputs in float32, of others in float64."""
    if exact and any(t.itemsize == 1 for t in inputs):
        return Reference(problem).run_float64(inputs)[0]
    namespace: dict[str, Any] = {}
    exec("import torch\nimport torch.nn.functional as F\n" + problem.source, namespace)  # noqa: S102 - our own text
    result: torch.Tensor = namespace["reference"](*(t.to(_WIDER[t.dtype]) if exact else t for t in inputs))
    return result


_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
_WIDER = {torch.bfloat16: torch.float32, torch.float32: torch.float64}


def _distance(result: torch.Tensor, expected: torch.Tensor) -> float:
    return float((result.to(expected.dtype) - expected).norm() / expected.norm())


def _line(result: dict[str, Any]) -> str:
    if "fault" in result:
        return f"{result['name']}: {result['fault']}"
    times, (m, n, k, batches) = dict(result["times_us"]), result["mnkl"]
    flops = 2e-6 * m * n * k * batches
    eager = times["eager"]
    best = min((t, name) for name, t in times.items() if name in result["configs"])
    each = " ".join(f"{name}={eager / t:.3f}" for name, t in times.items() if name != "eager")
    errors = result["errors"]
    limit = errors.get("eager", 3e-3)
    wrong = {name: e for name, e in errors.items() if isinstance(e, str) or not e <= limit}
    return (
        f"{result['name']}: eager {eager:.1f} µs ({flops / eager:.0f} TFLOP/s), default {eager / times['c0']:.3f}, "
        f"best {eager / best[0]:.3f} ({flops / best[0]:.0f}) {_short(result['configs'][best[1]])}; {each}; "
        f"{f'WRONG {wrong}' if wrong else 'right'} (default's error {errors.get('c0')}, limit {limit:.2e})"
    )


def _short(config: Mapping[str, Any]) -> str:
    return (
        f"{config['tile_m']}x{config['tile_n']}x{config['tile_k']} {config['cluster_m']}x{config['cluster_n']} "
        f"{config['schedule']} split {config['split_k']}"
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
