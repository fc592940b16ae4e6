"""How many evaluations a search needs on sweeps that an H200 has measured.

    python -m benchmarks.search.search_on_sweeps   (no GPU)

Each group of ``results/predicted_times_on_gpu.json`` is one family at one shape: a template's default (the first) and a
sample of its feasible configs, each measured and predicted. Searches are replayed on them; counted are evaluations
until one is within 3% of the group's fastest. ``results/search_sweeps_on_gpu.json`` has 200 to 300 configs a problem,
two of three for two shapes: there a search goes as on a GPU, led by as many predictions as it makes itself, most
configs asked for before any is timed. Where ``kernel_tuner`` is installed (an environment of its own with NumPy is
enough: nothing else is imported here), its strategies run in its simulation mode on the same sweeps.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import RESULTS, command_line, read_configs, write_json
from cutegen_lab.core.candidate import Config
from cutegen_lab.tuning import Patience, Search, Space, key, replay
from cutegen_lab.tuning.trace import geometric

SEEDS, WITHIN = 20, 0.03
PREDICTED, BUDGET, AHEAD = 64, 40, 30  # as cutegen tune's on 16 cores
POOR = 1.15  # times the fastest: where searches of the large sweeps begin
PATIENCE_S = 20  # for a run
# Of Kernel Tuner, with options where the default is for larger spaces. Not hybrid_vndx, which did not end on several
# sweeps, nor greedy_ils, which breaks off where a config has no neighbour in the sweep.
STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "random_sample": {}, "bayes_opt": {"popsize": 6}, "genetic_algorithm": {"popsize": 6}, "simulated_annealing": {},
    "pso": {"popsize": 6},
}  # fmt: skip


@dataclass(frozen=True)
class Sweep:
    """``configs`` in the order they were chosen, the family's default first."""

    name: str
    held_out: bool
    configs: Sequence[Config]
    measured_us: Mapping[str, float]
    predicted_us: Mapping[str, float]

    @property
    def space(self) -> Space:
        domains = {n: tuple(sorted({c[n] for c in self.configs})) for n in self.configs[0]}
        return Space(domains, tuple(self.configs), len(self.configs))

    @property
    def best_us(self) -> float:
        return min(self.measured_us.values())

    def needed(self, times_us: Iterable[float]) -> int:
        """Evaluations until one was close to the best; all of them where none was."""
        near = (number for number, t in enumerate(times_us, 1) if t <= (1 + WITHIN) * self.best_us)
        return next(near, len(self.configs) + 1)


Arm = Callable[[Sweep, int], list[float]]  # the times of a search's evaluations, in order, for a seed


def sweeps() -> list[Sweep]:
    found = []
    for name, group in read_configs(RESULTS / "predicted_times_on_gpu.json").items():
        rows = group["rows"]
        measured = {key(row["config"]): row["measured_us"] for row in rows}
        predicted = {key(row["config"]): row["predicted_us"] for row in rows}
        found.append(Sweep(name, group["held_out"], [row["config"] for row in rows], measured, predicted))
    return found


def ours(sweep: Sweep, seed: int, predicted: bool, patience: Patience) -> list[float]:
    search = Search(sweep.space, seed=seed, patience=patience)
    search.predict(sweep.predicted_us if predicted else {})
    steps = replay(search, sweep.measured_us, len(sweep.configs))
    return [step.time_us for step in steps if step.time_us is not None]


def large_sweeps() -> list[Sweep]:
    """Their configs' times are the geometric means over the shapes; the first config is no special one."""
    found = []
    for name, group in read_configs(RESULTS / "search_sweeps_on_gpu.json").items():
        rows = [row for row in group["rows"] if None not in (*row["us"], *row["predicted_us"])]
        measured = {key(row["config"]): geometric(row["us"]) for row in rows}
        predicted = {key(row["config"]): geometric(row["predicted_us"]) for row in rows}
        found.append(Sweep(name, True, [row["config"] for row in rows], measured, predicted))
    return found


def from_afar(sweep: Sweep, seed: int) -> Sweep:
    """The same, a poor config in front."""
    poor = [c for c in sweep.configs if sweep.measured_us[key(c)] > POOR * sweep.best_us]
    first = random.Random(seed).choice(poor)  # noqa: S311
    return replace(sweep, configs=[first, *(c for c in sweep.configs if c is not first)])


def as_on_a_gpu(sweep: Sweep, seed: int) -> list[float]:
    """Predictions by a search of their own, then ``AHEAD`` configs, and the rest as these are timed one by one."""
    sweep = from_afar(sweep, seed)
    guide = Search(sweep.space, seed=seed)
    while len(guide.times_us) < PREDICTED and (asked := guide.ask(16)):
        for config in asked:
            guide.tell(config, sweep.predicted_us[key(config)])
    search = Search(sweep.space, seed=seed)
    search.predict({name: t for name, t in guide.times_us.items() if t is not None})
    times, coming = list[float](), search.ask(AHEAD)
    while coming and len(times) < BUDGET:
        config = coming.pop(0)
        times.append(sweep.measured_us[key(config)])
        search.tell(config, times[-1])
        coming += search.ask(min(AHEAD - len(coming), BUDGET - len(times) - len(coming)))
    return times


def at_random(sweep: Sweep, seed: int, default_first: bool) -> list[float]:
    times = [sweep.measured_us[key(c)] for c in sweep.configs]
    first = [times.pop(0)] if default_first else []
    random.Random(seed).shuffle(times)  # noqa: S311
    return [*first, *times]


def kernel_tuner(sweep: Sweep, seed: int, strategy: str) -> list[float]:
    """Times of the configs it asked for, each once, in order."""
    from kernel_tuner import tune_kernel

    names = list(sweep.configs[0])
    domains = {n: sorted({c[n] for c in sweep.configs}) for n in names}
    chosen = {tuple(c[n] for n in names): sweep.measured_us[key(c)] for c in sweep.configs}

    def allowed(p):  # type: ignore[no-untyped-def]  # it reads the text of this function
        return tuple(p[n] for n in names) in chosen

    zero = dict.fromkeys(("verification_time", "strategy_time", "framework_time", "compile_time", "benchmark_time"), 0)
    entries = {
        ",".join(map(str, values)): {
            **dict(zip(names, values, strict=True)), "time": time_us, "times": [time_us], **zero,
            "timestamp": "2026-01-01T00:00:00+00:00",
        } for values, time_us in chosen.items()
    }  # fmt: skip
    cache = {
        "device_name": "replayed", "kernel_name": "kernel", "problem_size": 1, "tune_params_keys": names,
        "tune_params": domains, "objective": "time", "cache": entries,
    }  # fmt: skip
    random.seed(seed)
    np.random.seed(seed)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(None):
        path = Path(folder) / "cache.json"
        path.write_text(json.dumps(cache))
        results, _ = tune_kernel(
            "kernel", "__global__ void kernel() {}", 1, [], domains, restrictions=allowed, strategy=strategy,
            strategy_options={"max_fevals": len(chosen), **STRATEGIES[strategy]}, simulation_mode=True, cache=str(path),
            quiet=True,
        )  # fmt: skip
    asked = dict.fromkeys(tuple(result[n] for n in names) for result in results)
    return [chosen[values] for values in asked]


def runs(arm: Arm, sweep: Sweep) -> list[int]:
    """Evaluations needed, a seed each; runs that broke off or did not end are left out."""
    needed = []
    for seed in range(SEEDS):
        signal.alarm(PATIENCE_S)
        try:
            needed.append(sweep.needed(arm(sweep, seed)))
        except Exception as error:
            print(f"{sweep.name}, seed {seed}: {type(error).__name__} {error}", file=sys.stderr)
        finally:
            signal.alarm(0)
    return needed


def out_of_patience(*_: object) -> None:
    raise TimeoutError(f"no end after {PATIENCE_S} s")


def summary(needed: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """``median``: over groups of the median over seeds; ``mean`` and ``worst`` likewise of means over seeds."""
    needed = {group: of for group, of in needed.items() if of}
    means = [statistics.fmean(of) for of in needed.values()]
    return {
        "runs": sum(map(len, needed.values())),
        "median": statistics.median(statistics.median(of) for of in needed.values()),
        "mean": round(statistics.fmean(means), 2), "worst": round(max(means), 2),
        "within_12": round(statistics.fmean(n <= 12 for of in needed.values() for n in of), 3),
    }  # fmt: skip


def stopping(every: Sequence[Sweep]) -> dict[str, float]:
    """Where the search stops by itself, and how much slower than the fastest its best is then."""
    runs = [(sweep, ours(sweep, seed, True, Patience())) for sweep in every for seed in range(SEEDS)]
    regrets = [min(times) / sweep.best_us - 1 for sweep, times in runs]
    return {
        "evaluations": round(statistics.fmean(len(times) for _, times in runs), 2),
        "mean_regret": round(statistics.fmean(regrets), 5), "worst_regret": round(max(regrets), 5),
    }  # fmt: skip


def on_large_sweeps(arms: Mapping[str, Arm]) -> dict[str, Any]:
    """Each arm's evaluations and, sweep by sweep, the mean over seeds."""
    found: dict[str, Any] = {}
    for name, arm in arms.items():
        needed = {sweep.name: runs(arm, sweep) for sweep in large_sweeps()}
        means = {group: round(statistics.fmean(of), 2) for group, of in needed.items() if of}
        found[name] = summary(needed) | {"groups": means}
        print(f"large sweeps: {name:30} {found[name]}", file=sys.stderr)
    return found


def main() -> None:
    signal.signal(signal.SIGALRM, out_of_patience)
    never = Patience(gain=0.0, least=1 << 20)
    large: dict[str, Arm] = {
        "as on a GPU": as_on_a_gpu,
        "random": partial(at_random, default_first=False),
    }
    arms: dict[str, Arm] = {
        "predicted times, then learned": partial(ours, predicted=True, patience=never),
        "learned alone": partial(ours, predicted=False, patience=never),
        "random": partial(at_random, default_first=False),
        "random after the default": partial(at_random, default_first=True),
    }
    try:
        tuner = version("kernel_tuner")
        warnings.simplefilter("ignore")  # its own, about options and repeats
        theirs = {f"kernel_tuner {name}": partial(kernel_tuner, strategy=name) for name in STRATEGIES}
        arms, large = arms | theirs, large | theirs
    except PackageNotFoundError:
        tuner = ""
    every = sweeps()
    found: dict[str, Any] = {}
    for name, arm in arms.items():
        needed = {sweep.name: runs(arm, sweep) for sweep in every}
        held_out = {sweep.name: needed[sweep.name] for sweep in every if sweep.held_out}
        hard = {s.name: needed[s.name] for s in every if s.needed([s.measured_us[key(s.configs[0])]]) > 1}
        found[name] = {
            "all": summary(needed), "held_out": summary(held_out), "default_is_not_near": summary(hard),
            "groups": {group: round(statistics.fmean(of), 2) for group, of in needed.items() if of},
        }  # fmt: skip
        print(f"{name:40} {found[name]['all']} hard {found[name]['default_is_not_near']}", file=sys.stderr)
    result = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "what": f"evaluations until within {WITHIN:.0%} of the fastest of a sweep; {len(every)} sweeps, {SEEDS} seeds",
        "protocol": "The first two and 'random after the default' start at the family's default config; Kernel Tuner's "
        "strategies start where they choose. A config asked for again is not counted again. Runs of "
        "Kernel Tuner's that broke off or did not end are left out ('runs' counts the rest of 20 a sweep). "
        "The time model's constants "
        "were fitted with the sweeps that are not held out in sight; the search's were chosen with all of them.",
        "kernel_tuner": tuner or "not installed",
        "arms": found,
        "stops_by_itself": stopping(every),
        "large_sweeps": on_large_sweeps(large),
    }
    write_json(RESULTS / "search_on_sweeps.json", result)


if __name__ == "__main__":
    command_line(main)
