"""A stopwatch without a GPU: synthetic times with drift and noise, outputs computed by a Python kernel."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.protocols import Cancel
from cutegen_lab.core.stopwatch import Mode, ReferenceKind, Samples, Subject
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.timing.measured import rotated_inputs
from cutegen_lab.problems.tensors import laid_out

CALLS = 4
MAIN_US = {"candidate": 100.0, "eager PyTorch": 300.0, "torch.compile": 200.0, "copy of the compulsory bytes": 90.0}


@dataclass
class FakeStopwatch:
    """``true_us`` by subject; a sample is that times the drift of the moment (``drift`` a sample) and Gaussian noise.

    ``faults``: what adding (name) or sampling (name, count of samples before; name, mode) a subject comes to.
    ``crowded`` subjects it has room for, if any number.
    """

    kernel: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]
    true_us: Mapping[str, float] = field(default_factory=lambda: dict(MAIN_US))
    noise: float = 0.001
    drift: float = 0.0
    single_extra_us: Mapping[str, float] = field(default_factory=dict)
    between_calls_us: Mapping[str, float] = field(default_factory=dict)
    readings: Mapping[str, float] = field(default_factory=dict)
    faults: Mapping[str | tuple[str, int | Mode], Fault] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=lambda: {"GPU": "none"})
    dram_bytes_per_s: float = 4.8e12
    l2_bytes: int = 60 << 20
    log: list[tuple[str, Mode, int]] = field(default_factory=list)
    fetched: list[tuple[str, int]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    crowded: int = 1000
    opened: int = 0
    closed: bool = False
    name: str = "fake"
    kind: str = "cuda"
    torch_device: str = "cpu"
    modes: Sequence[Mode] = ("cold", "warm", "events", "records")
    asked: Counter[str] = field(default_factory=Counter)
    prepared: list[Problem] = field(default_factory=list)

    def prepare(self, problem: Problem) -> None:
        self.prepared.append(problem)

    def stopwatch(
        self, tensors: Sequence[TensorSpec], inputs: Sequence[memoryview], cancel: Cancel
    ) -> FakeStopwatch | Fault:
        if "open" in self.faults:
            return self.faults["open"]
        self.opened += 1
        self._random = random.Random(7)  # noqa: S311
        self._room = self.crowded
        self._inputs = [
            laid_out(torch.frombuffer(bytearray(data), dtype=torch.uint8), spec)
            for spec, data in zip(tensors, inputs, strict=False)
        ]
        self._specs = tensors[: len(inputs)]
        return self

    def open_another(self, tensors: Sequence[TensorSpec], inputs: Sequence[memoryview]) -> FakeStopwatch | Fault:
        return self.stopwatch(tensors, inputs, threading.Event())

    def add_build(self, name: str, build: Build) -> Subject | Fault:
        return self._add(name)

    def add_reference(self, name: str, problem: Problem, kind: ReferenceKind) -> Subject | Fault:
        return self._add(name)

    def add_copy(self, name: str) -> Subject | Fault:
        return self._add(name)

    def sample(self, name: str, mode: Mode, count: int, seed: int) -> Samples | Fault:
        if fault := self.faults.get((name, mode)):
            return fault
        before = self.asked[name]
        self.asked[name] += 1
        self.log.append((name, mode, seed))
        if fault := self.faults.get((name, before)):
            return fault
        moment = 1 + self.drift * len(self.log)
        time_us = self.true_us[name] * moment * (1 + self._random.gauss(0, self.noise))
        if mode == "warm":
            time_us *= 0.9
        if mode == "events":
            time_us += self.single_extra_us.get(name, 0.0)
        if mode == "records":
            time_us -= self.between_calls_us.get(name, 1.0)
        return Samples((time_us,) * count, f"{mode} clock", f"{mode} flush", self.readings)

    def outputs(self, name: str, call: int) -> list[memoryview] | Fault:
        subject, mode, seed = self.log[-1]
        assert (subject, mode) == (name, "cold"), "outputs are asked for directly after a cold sample"
        self.fetched.append((name, call))
        results = self.kernel(rotated_inputs(self._inputs, self._specs, seed, call))
        return [memoryview(r.contiguous().reshape(-1).view(torch.uint8).numpy()) for r in results]

    def close(self) -> None:
        self.closed = True

    def _add(self, name: str) -> Subject | Fault:
        self.added.append(name)
        self._room -= 1
        if self._room < 0:
            return Fault(Verdict.OUT_OF_MEMORY, "no room")
        return self.faults.get(name) or Subject(name, CALLS)


def hang() -> Fault:
    return Fault(Verdict.HANG, "no answer within the watchdog's 10 s")
