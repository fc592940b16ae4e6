"""What nvidia-matmul-heuristics would add to a search among GEMM configs.

    python -m benchmarks.search.matmul_heuristics [--predict]

It estimates a config's time on a named GPU from tile, cluster and stages, on a CPU, in microseconds. Here its estimates
lead a search in place of the emulator's predictions, and together with them, over the configs that an H200 has measured
(``results/gemm_sweep_on_gpu.json``). ``--predict`` adds the emulator's predictions for shapes up to 4096 to the results
(minutes); without it the comparison is made with those that are there. The library runs in a process of its own: its
``estimateSiliconMetric`` crashed the interpreter.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.harness import ARCH, RESULTS, command_line, compiled, quiet, read_json, write_json
from benchmarks.search.search_on_sweeps import SEEDS, Sweep, at_random, ours
from cutegen_lab.bench.case import problem_of
from cutegen_lab.core.problem import Problem
from cutegen_lab.tuning import Patience, key

OUT = RESULTS / "matmul_heuristics.json"
NEVER = Patience(gain=0.0, least=1 << 20)
LARGEST = 4096  # of a shape that the emulator predicts in seconds

CHILD = """
import ctypes, json, sys
from nvMatmulHeuristics import (
    NvMatmulHeuristicsInterfaceEx as Interface, NvMatmulHeuristicsMatmulLayout as Layout,
    NvMatmulHeuristicsNvidiaGpu as Gpu, NvMatmulHeuristicsTarget as Target,
)
library = Interface(Target.CUTLASS3, gpu=Gpu.H200_SXM)
library._ensure_discovery_loaded(library.target, "HSH", Layout.NN_ROW_MAJOR)
library._ensure_discovery_loaded(library.target, "HSH", Layout.NT_ROW_MAJOR)
for m, n, k, batches, transposed, c in json.load(sys.stdin):
    layout = Layout.NT_ROW_MAJOR if transposed else Layout.NN_ROW_MAJOR
    problem = library.makeNvMatmulHeuristicsProblem(m, n, k, layout, batches)
    kernel = Interface.nvmmhKernelConfiguration()
    kernel.cta[:] = [c["tile_m"], c["tile_n"], c["tile_k"]]
    kernel.warp[:], kernel.instr[:] = [64, c["tile_n"], c["tile_k"]], [64, 8, 16]
    kernel.splitK, kernel.loadStages = c.get("split_k", 1), c["stages"]
    kernel.gridSwizzle, kernel.ctaOrder = c["group"], c["raster"] != "m"
    kernel.cluster[:] = [c["cluster_m"], c["cluster_n"]]
    seconds = library.nvMatmulHeuristicsEstimateRuntime(
        library.handle, b"HSH", ctypes.c_int(library.target), ctypes.byref(problem), ctypes.byref(kernel),
        library.hardware_descriptor,
    )
    print(1e6 * seconds, flush=True)
"""


def shapes() -> dict[str, dict[str, Any]]:
    return {s["name"]: s for s in read_json(RESULTS / "gemm_sweep_on_gpu.json")["shapes"]}


def estimated(shape: Mapping[str, Any], configs: list[Mapping[str, Any]]) -> dict[str, float]:
    """By key, in microseconds. Raises CalledProcessError where the library crashed before the last."""
    asked = json.dumps([[*shape["mnkl"], _transposed(shape), config] for config in configs])
    done = subprocess.run([sys.executable, "-c", CHILD], input=asked, capture_output=True, text=True)  # noqa: S603
    times = [float(line) for line in done.stdout.split()]
    if len(times) < len(configs):
        raise subprocess.CalledProcessError(done.returncode, "nvidia-matmul-heuristics", done.stdout, done.stderr)
    return {key(c): t for c, t in zip(configs, times, strict=True)}


def _transposed(shape: Mapping[str, Any]) -> bool:
    name: str = shape["name"]
    return name.startswith(("linear", "skinny-64", "skinny-256", "ragged-4096", "fused-bias"))


def problem(shape: Mapping[str, Any]) -> Problem:
    """The product that was timed; what followed it was a residual where it is no larger than :data:`LARGEST`."""
    m, n, k, batches = shape["mnkl"]
    if batches > 1:
        expression, inputs = "torch.bmm(a, b)", f"a: bf16[{batches},{m},{k}], b: bf16[{batches},{k},{n}]"
    elif _transposed(shape):
        expression, inputs = "F.linear(a, b)", f"a: bf16[{m},{k}], b: bf16[{n},{k}]"
    else:
        expression, inputs = "a @ b", f"a: bf16[{m},{k}], b: bf16[{k},{n}]"
    if shape["name"].startswith("fused"):
        expression, inputs = f"{expression} + r", f"{inputs}, r: bf16[{m},{n}]"
    return problem_of(shape["name"], expression, inputs)


def predictions() -> dict[str, dict[str, float]]:
    """The emulator's predictions by shape and config."""
    from cutegen_lab.compile import CageCompiler
    from cutegen_lab.core.roofline import target_gpu
    from cutegen_lab.core.verdict import Fault
    from cutegen_lab.devices.emulator import EmulatorDevice
    from cutegen_lab.judge import StandardJudge
    from cutegen_lab.templates.frontend.reader import read
    from cutegen_lab.templates.registry import family_for

    judge, emulator, gpu = StandardJudge(), EmulatorDevice(), target_gpu(ARCH, "")
    found = {}
    with CageCompiler(Path("~/.cache/cutegen-lab").expanduser()) as compiler:
        for name, shape in shapes().items():
            if max(shape["mnkl"]) > LARGEST:
                continue
            asked = problem(shape)
            graph = read(asked)
            family, times = family_for(graph), dict[str, float]()
            for config in shape["configs"].values():
                whole = {"split_k": 1, **config}  # the sweep is older than this parameter
                built = compiled(compiler, family.write(asked, graph, whole), whole, [asked.workload])
                timing, _ = judge.time(asked, built, emulator, gpu, quiet, threading.Event())  # type: ignore[arg-type]
                if not isinstance(timing, Fault):
                    times[key(config)] = timing.time_us
            found[name] = times
            print(name, len(times), file=sys.stderr, flush=True)
    return found


def compare(shape: Mapping[str, Any], predicted: Mapping[str, float]) -> dict[str, Any]:
    """Mean evaluations until within 3% of the fastest, an arm each."""
    ran = {n: c for n, c in shape["configs"].items() if n in shape["times_us"]}
    times = {key(c): shape["times_us"][n] for n, c in ran.items()}
    configs = list({key(c): c for c in ran.values()}.values())
    estimates = estimated(shape, configs)
    whole = len(predicted) == len(configs)
    guides: dict[str, Mapping[str, float]] = {"nothing": {}, "heuristics": estimates}
    if whole:
        guides["emulator"] = predicted
        guides["both"] = {name: math.sqrt(predicted[name] * estimates[name]) for name in predicted}
    needed: dict[str, float] = {}
    for name, guide in guides.items():
        sweep = Sweep(shape["name"], False, configs, times, guide)
        counts = [sweep.needed(ours(sweep, seed, bool(guide), NEVER)) for seed in range(SEEDS)]
        needed[name] = round(statistics.fmean(counts), 2)
    drawn = partial(at_random, default_first=True)
    counts = [sweep.needed(drawn(sweep, seed)) for seed in range(SEEDS)]
    first = min(estimates, key=lambda name: estimates[name])
    return {
        "configs": len(configs), "needed": {**needed, "random": round(statistics.fmean(counts), 2)},
        "first_choice": round(times[first] / sweep.best_us, 3), "distinct_estimates": len(set(estimates.values())),
    }  # fmt: skip


def main(*, predict: bool = False) -> None:
    kept: dict[str, dict[str, float]] = read_json(OUT)["predicted_us"] if OUT.exists() else {}
    if predict:
        kept = predictions()
    try:
        library = version("nvidia-matmul-heuristics")
    except PackageNotFoundError:
        sys.exit("this needs nvidia-matmul-heuristics: pip install nvidia-matmul-heuristics==0.1.0.27")
    every = {name: compare(shape, kept.get(name, {})) for name, shape in shapes().items()}
    led = [found["needed"] for found in every.values() if "emulator" in found["needed"]]
    arms = led[0] if led else ()
    result = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "what": f"evaluations until within 3% of the fastest of a shape's configs, measured on an H200; {SEEDS} seeds",
        "library": library,
        "all_shapes": {arm: round(statistics.fmean(f["needed"][arm] for f in every.values()), 2)
                       for arm in ("nothing", "heuristics", "random")},
        "shapes_that_the_emulator_predicted": {
            "shapes": len(led), **{arm: round(statistics.fmean(n[arm] for n in led), 2) for arm in arms}
        },
        "first_choice_times_the_best": round(statistics.median(f["first_choice"] for f in every.values()), 3),
        "by_shape": every, "predicted_us": kept,
    }  # fmt: skip
    write_json(OUT, result)
    print(json.dumps({name: result[name] for name in ("all_shapes", "shapes_that_the_emulator_predicted",
                                                      "first_choice_times_the_best")}, indent=1))  # fmt: skip


if __name__ == "__main__":
    command_line(main)
