"""What a problem compels a kernel to read, found by asking its reference: of pieces of an input chosen at random, which
change the answer when their values change?

A kernel that moves less than that has its answer from elsewhere. Gathers, masks and unused inputs compel little, and
so nothing is asked of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch

from cutegen_lab.core.counters import SECTOR_BYTES
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.inputs import draw
from cutegen_lab.judge.place import Place
from cutegen_lab.problems import Reference
from cutegen_lab.problems.tensors import alike, moved, storage

PIECE_BYTES = SECTOR_BYTES  # the least that is moved
PIECES = 48  # an input
DOUBT = 1e-7  # how likely a share may be overstated
AFFORDABLE_BYTES = 4 << 20  # of a workload whose reference runs on the CPU, some 50 times an input
SAMPLED = 0.8  # of what is compelled must be seen where only some blocks were counted: they may be the lighter ones
_VALUES = ("normal", "large")  # a changed piece takes values of each: what is below a maximum may rise above it

Fractions = Mapping[str, float]
Tensors = Sequence[torch.Tensor]


def required_fraction(reference: Reference, workload: Workload, inputs: Tensors, seed: int, place: Place) -> Fractions:
    """At least which share of each input's bytes the answer to ``inputs`` depends on, with a chance of ``DOUBT`` to be
    too high; inputs of which nothing is known are left out.

    Where every one of n pieces matters, it is ``DOUBT`` ** (1/n): fewer would have all mattered less often than that.
    """
    if place.on_cpu and workload.compulsory_bytes > AFFORDABLE_BYTES:
        return {}
    generator = torch.Generator().manual_seed(seed)
    trials = [_trial(spec, seed, generator) for spec in workload.inputs]
    matter = place.run(partial(_matter, reference, workload, inputs, trials))
    return {
        spec.name: 1.0 if trial.whole else DOUBT ** (1 / len(trial.chosen))
        for spec, trial, every in zip(workload.inputs, trials, matter, strict=True)
        if every
    }


class _Trial(NamedTuple):
    """Pieces of one input, all of them where ``whole``, and for each kind of values those of each piece."""

    chosen: list[int]
    values: list[Tensors]
    whole: bool


def _trial(spec: TensorSpec, seed: int, generator: torch.Generator) -> _Trial:
    pieces = -(-spec.storage_bytes // PIECE_BYTES)
    chosen = torch.randperm(pieces, generator=generator)[:PIECES].tolist()
    size = PIECE_BYTES // spec.dtype.itemsize
    flat = replace(spec, shape=(size * len(chosen),), strides=())
    values: list[Tensors] = [draw(Workload("pieces", (flat,), ()), name, seed)[0].split(size) for name in _VALUES]
    return _Trial(chosen, values, len(chosen) == pieces)


def _matter(
    reference: Reference, workload: Workload, inputs: Tensors, trials: Sequence[_Trial], where: str
) -> list[bool]:
    """For each input, whether it has pieces and every chosen one matters."""
    there = [moved(t, spec, where) for t, spec in zip(inputs, workload.inputs, strict=True)]
    before = reference.run(there)
    memories = [storage(t, spec) for t, spec in zip(there, workload.inputs, strict=True)]
    return [
        bool(trial.chosen)
        and all(
            any(_changes(reference, there, memory, piece, own[turn], before) for own in trial.values)
            for turn, piece in enumerate(trial.chosen)
        )
        for memory, trial in zip(memories, trials, strict=True)
    ]


def _changes(
    reference: Reference, inputs: Tensors, memory: torch.Tensor, piece: int, values: torch.Tensor, before: Tensors
) -> bool:
    """Whether the answer is another with ``values`` as that piece of one input's ``memory``."""
    place = memory[piece * len(values) : (piece + 1) * len(values)]
    kept = place.clone()
    try:
        place.copy_(values[: len(place)])
        after = reference.run(inputs)
    except (IndexError, RuntimeError, ValueError, AssertionError, ZeroDivisionError):
        return False  # no value for this input: an index, a divisor
    finally:
        place.copy_(kept)
    return not all(alike(a, b) for a, b in zip(before, after, strict=True))


def check_inputs_read(
    workload: Workload, required: Fractions, counters: Mapping[str, float], sampled: bool = False
) -> Fault | None:
    """The first input of which less was loaded than the answer depends on, by a device's ``loaded_bytes:…`` counters.
    ``sampled``: they are scaled from some of the blocks."""
    for spec in workload.inputs:
        loaded = counters.get(f"loaded_bytes:{spec.name}")
        share = required.get(spec.name, 0.0)
        if loaded is not None and loaded < share * (SAMPLED if sampled else 1.0) * spec.nbytes:
            return Fault(
                Verdict.UNREAD_INPUT,
                f"the answer depends on at least {share:.0%} of the {spec.nbytes:,} bytes of {spec.name!r}, and the "
                f"kernels load {loaded:,.0f} of them",
            )
    return None
