"""Times prepared kernels, interleaved and with a cold L2, and checks the outputs of timed calls. Needs a GPU, not the
DSL."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import closing
from statistics import median

import torch

from cutegen_lab.bench.case import Case
from cutegen_lab.bench.prepared import Prepared
from cutegen_lab.bench.quack import QUACK
from cutegen_lab.bench.record import COPY, Row
from cutegen_lab.core.artifact import Build
from cutegen_lab.core.protocols import Cancel
from cutegen_lab.core.stopwatch import ReferenceKind, Stopwatch
from cutegen_lab.core.verdict import Fault
from cutegen_lab.devices.cuda import CudaDevice
from cutegen_lab.judge.reference_device import ReferenceDevice
from cutegen_lab.judge.timing.confidence import FEWEST_SAMPLES, comparison, relative_half_width
from cutegen_lab.judge.timing.interleaved import Effort, InterleavedTimer
from cutegen_lab.judge.timing.measured import rotated_inputs
from cutegen_lab.judge.timing.timed_outputs import inputs_for, output_errors, skipped_work
from cutegen_lab.problems import Reference
from cutegen_lab.problems.tensors import from_bytes, to_bytes

PEERS: Sequence[ReferenceKind] = ("eager", "compile")
EFFORT = Effort(half_width=0.003, seconds=0.5, min_rounds=8, least_rounds=FEWEST_SAMPLES, warm_up_seconds=0.05)
CHECKED_BYTES = 1 << 29  # limit in bytes of all outputs: larger ones are timed without a check
CHECKED_ON_CPU = 1 << 28  # limit in bytes of all tensors, if the reference must run on the CPU
_SEED = 1


def measure(device: CudaDevice, case: Case, prepared: Prepared, cancel: Cancel, effort: Effort = EFFORT) -> Row:
    """Times one case on ``device``. Subjects with a fault are left out and recorded in ``Row.faults``. Raises
    Cancelled."""
    workload = case.problem.workload
    row = Row(
        case.name, case.work, workload.compulsory_bytes, case.flops, prepared.family, prepared.configs,
        insensitive=[*case.problem.insensitive],
    )  # fmt: skip
    if prepared.why_not:
        row.faults["c0"] = prepared.why_not
    builds = {f"c{number}": build for number, build in enumerate(prepared.builds)}
    if prepared.peer:
        builds[QUACK] = prepared.peer
    given = inputs_for(case.problem, Reference(case.problem), _SEED)
    views = to_bytes(given, workload.inputs)
    while True:
        watch = device.stopwatch(workload.tensors, views, cancel)
        if isinstance(watch, Fault):
            row.faults["all"] = str(watch)
            return row
        with closing(watch):
            bad = _load(watch, case, builds, row)
            if bad is None:
                _check(watch, device, case, given, row)
                _time(watch, effort, cancel, row)
                return row
        del builds[bad]  # this build ended the device's worker


def _load(watch: Stopwatch, case: Case, builds: Mapping[str, Build], row: Row) -> str | None:
    """Loads every subject onto the stopwatch. Returns the name of the build whose fault ended the worker; None if there
    is none."""
    row.times_us = {}
    for name, build in builds.items():
        if isinstance(added := watch.add_build(name, build), Fault):
            row.faults[name] = str(added)
            return name
        row.times_us[name] = 0.0
    for name, added in [*((kind, watch.add_reference(kind, case.problem, kind)) for kind in PEERS),
                        (COPY, watch.add_copy(COPY))]:  # fmt: skip
        if isinstance(added, Fault):
            row.faults[name] = str(added)
        else:
            row.times_us[name] = 0.0
    return None


def _check(watch: Stopwatch, device: CudaDevice, case: Case, given: Sequence[torch.Tensor], row: Row) -> None:
    """Compares the outputs of one call of each build with the reference's, by the judge's rule for timed outputs."""
    workload = case.problem.workload
    place = ReferenceDevice(device, workload)
    outputs = sum(spec.nbytes for spec in workload.outputs)
    if outputs > CHECKED_BYTES or (place.on_cpu and workload.nbytes > CHECKED_ON_CPU):
        return
    compared = output_errors(case.problem, Reference(case.problem), place)
    inputs = rotated_inputs(given, workload.inputs, _SEED, 0)
    for name in [n for n in row.times_us if n not in (*PEERS, COPY)]:
        sampled = watch.sample(name, "cold", 1, _SEED)
        got = sampled if isinstance(sampled, Fault) else watch.outputs(name, 0)
        if not isinstance(got, Fault):
            results = [from_bytes(data, spec) for spec, data in zip(workload.outputs, got, strict=True)]
            found = compared(inputs, results)
            row.errors[name] = float(f"{max(error.norm for error in found):.3g}")
            row.errors["eager"] = float(f"{max(error.torch_norm for error in found):.3g}")
            got = skipped_work(found) or got
        if isinstance(got, Fault):
            row.faults[name] = str(got)
            del row.times_us[name]
        else:
            row.checked.append(name)


def _time(watch: Stopwatch, effort: Effort, cancel: Cancel, row: Row) -> None:
    names = list(row.times_us)
    row.times_us = {}
    rounds = InterleavedTimer(watch, names, itertools.count(100).__next__, cancel).converge(effort)
    if isinstance(rounds, Fault):
        row.faults[names[0]] = str(rounds)
        return
    row.faults |= {name: str(fault) for name, fault in rounds.dropped.items()}
    row.times_us = {name: round(median(times), 3) for name, times in rounds.times_us.items()}
    row.half_widths = {name: round(relative_half_width(times), 5) for name, times in rounds.times_us.items()}
    if "c0" in rounds.times_us:
        for name in [n for n in rounds.times_us if n != "c0"]:
            found = comparison(name, rounds.times_us[name], rounds.times_us["c0"])
            row.ratios[name] = [round(ratio, 4) for ratio in (found.ratio, found.low, found.high)]
    row.rounds = len(next(iter(rounds.times_us.values())))
